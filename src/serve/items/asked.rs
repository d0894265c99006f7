//! The parameters of an item's address: `version`, `diff`. Other keys are ignored.

use crate::model::Count;
use crate::serve::problem::Problem;

/// A version of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Which {
    /// The newest bytes, whether they made a version or not.
    Newest,
    /// The version of this number.
    Number(Count),
}

/// What is asked of an item's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// The item with its versions.
    Page,
    /// `?version=N` or `?version=newest`: the bytes of one.
    Version(Which),
    /// `?diff=A..B`: what differs between two, the older first.
    Difference(Which, Which),
}

impl Asked {
    /// Reads the query.
    pub(super) fn read(query: &str) -> Result<Self, Problem> {
        let mut asked = Self::Page;
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let read = match &*key {
                "version" => Self::Version(which(&value).ok_or_else(|| {
                    let said = "version is the number of a version, or newest";
                    Problem::parameter("version", said)
                })?),
                "diff" => {
                    let pair = value.split_once("..");
                    let pair = pair.and_then(|(old, new)| Some((which(old)?, which(new)?)));
                    let (old, new) = pair.ok_or_else(|| {
                        let said = "diff is two numbers of versions, the older first: 3..4; newest \
                                    is one too";
                        Problem::parameter("diff", said)
                    })?;
                    Self::Difference(old, new)
                }
                _ => continue,
            };
            if asked != Self::Page {
                let said = format!("{key} is given where version or diff is already");
                return Err(Problem::parameter(&key, said));
            }
            asked = read;
        }
        Ok(asked)
    }
}

fn which(text: &str) -> Option<Which> {
    if text == "newest" {
        return Some(Which::Newest);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    Count::new(number).ok().map(Which::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read() {
        let number = |number| Which::Number(Count::new(number).unwrap());
        for (query, asked) in [
            ("", Asked::Page),
            ("utm_source=x", Asked::Page),
            ("version=3", Asked::Version(number(3))),
            ("version=newest", Asked::Version(Which::Newest)),
            ("diff=3..4", Asked::Difference(number(3), number(4))),
            ("diff=4..newest&x=y", Asked::Difference(number(4), Which::Newest)),
        ] {
            assert_eq!(Asked::read(query).unwrap(), asked, "{query}");
        }
        for (query, parameter) in [
            ("version=", "version"),
            ("version=0", "version"),
            ("version=-1", "version"),
            ("version=%2B1", "version"),
            ("version=99999999999", "version"),
            ("diff=3", "diff"),
            ("diff=3...4", "diff"),
            ("diff=..", "diff"),
            ("version=1&version=1", "version"),
            ("version=1&diff=1..2", "diff"),
        ] {
            let problem = serde_json::to_value(Asked::read(query).unwrap_err()).unwrap();
            assert_eq!(
                (&problem["parameter"], &problem["status"]),
                (&parameter.into(), &400.into())
            );
        }
    }
}
