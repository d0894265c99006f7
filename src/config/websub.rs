//! `[websub]`: hubs of upstreams.

use super::section::Section;

pub(super) const KEYS: &[&str] = &["subscribe"];

/// What is done about hubs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Websub {
    /// Whether hubs of upstreams are subscribed to; `None`: where they can reach this gateway, as
    /// far as its public address tells.
    pub subscribe: Option<bool>,
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> Websub {
    Websub { subscribe: section.boolean("subscribe") }
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    #[test]
    fn to_subscribe_is_said_or_left_open() {
        let said = |text: &str| {
            let checked = check("f", &format!("[websub]\n{text}"));
            checked.map(|checked| checked.config.websub.subscribe).map_err(|e| e.to_string())
        };
        assert_eq!(said(""), Ok(None));
        assert_eq!(said("subscribe = true"), Ok(Some(true)));
        assert_eq!(said("subscribe = false"), Ok(Some(false)));
        assert!(said("subscribe = \"yes\"").unwrap_err().contains("subscribe"));
        assert!(said("subscribes = true").unwrap_err().contains("did you mean subscribe?"));
    }
}
