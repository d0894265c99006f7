//! The parameters of an item's address: `version`, `diff`. Other keys are ignored.

use crate::problem::Problem;
use crate::query::Query;
use tidegate_core::model::Count;

/// A version of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum VersionChoice {
    /// The newest bytes, whether they made a version or not.
    Newest,
    /// The version of this number.
    Number(Count),
}

/// What is asked of an item's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ItemQuery {
    /// The item with its versions.
    Page,
    /// `?version=N` or `?version=newest`: the bytes of one.
    Version(VersionChoice),
    /// `?diff=A..B`: what differs between two, the older first.
    Difference(VersionChoice, VersionChoice),
}

impl ItemQuery {
    /// Reads the query.
    pub(super) fn read(query: &str) -> Result<Self, Problem> {
        let query = Query::read(query)?;
        let version =
            query.parse("version", "version is the number of a version, or newest", which)?;
        let wanted = "diff is two numbers of versions, the older first: 3..4; newest is one too";
        let difference = query.parse("diff", wanted, |value| {
            let (old, new) = value.split_once("..")?;
            Some((which(old)?, which(new)?))
        })?;
        match (version, difference) {
            (None, None) => Ok(Self::Page),
            (Some(version), None) => Ok(Self::Version(version)),
            (None, Some((old, new))) => Ok(Self::Difference(old, new)),
            (Some(_), Some(_)) => Err(Problem::parameter("diff", "diff is given beside version")),
        }
    }
}

fn which(text: &str) -> Option<VersionChoice> {
    if text == "newest" {
        return Some(VersionChoice::Newest);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits)?;
    Count::new(number).ok().map(VersionChoice::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_read() {
        let number = |number| VersionChoice::Number(Count::new(number).unwrap());
        for (query, asked) in [
            ("", ItemQuery::Page),
            ("utm_source=x", ItemQuery::Page),
            ("version=3", ItemQuery::Version(number(3))),
            ("version=newest", ItemQuery::Version(VersionChoice::Newest)),
            ("diff=3..4", ItemQuery::Difference(number(3), number(4))),
            ("diff=4..newest&x=y", ItemQuery::Difference(number(4), VersionChoice::Newest)),
        ] {
            assert_eq!(ItemQuery::read(query).unwrap(), asked, "{query}");
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
            let problem = serde_json::to_value(ItemQuery::read(query).unwrap_err()).unwrap();
            assert_eq!(
                (&problem["parameter"], &problem["status"]),
                (&parameter.into(), &400.into())
            );
        }
    }
}
