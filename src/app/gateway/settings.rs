//! Which settings are to be the same at all gateways over one store.

use crate::app::{AppError, token};
use tidegate_config::{Config, Polling, ReaderToken};
use tidegate_net::fetch;
use tidegate_store::SharedSettings;

/// Those settings. What is a machine's own is left out: where it listens, its certificate, its proxy.
pub(super) fn shared(config: &Config, public_url: &str) -> Result<SharedSettings, AppError> {
    let Config { server, publish, sup, websub, hosts, feeds, readers, .. } = config;
    let admin_token = token::known_token(config)?;
    // One that was not chosen at random might be guessed by its hash.
    let admin_token = admin_token.filter(|token| ReaderToken::new(token).is_ok());
    let mut tokens = Vec::with_capacity(readers.len());
    for reader in readers {
        let found = reader.token.as_ref().map(fetch::find_secret).transpose();
        tokens.push(found.map_err(|why| AppError::Input(format!("reader.token: {why}")))?);
    }
    let polling = Polling {
        user_agent: String::new(),
        proxy: None,
        proxy_resolves: false,
        ca_file: None,
        ..config.polling.clone()
    };
    let mut settings = SharedSettings::new(env!("CARGO_PKG_VERSION"));
    settings.add("server.public_url", public_url);
    settings.add("server.admin_token", admin_token);
    settings.add("server.pages", (server.pages, server.challenge, server.indexed));
    settings.add("polling", polling);
    settings.add("publish", publish);
    settings.add("sup", sup);
    settings.add("websub", websub);
    settings.add("host", hosts);
    settings.add("feed", feeds);
    let readers: Vec<_> =
        readers.iter().map(|it| (&it.name, &it.feeds, it.all_private)).zip(tokens).collect();
    settings.add("reader", readers);
    settings.add("origin", &config.origins);
    settings.add("allow", &config.allow);
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::check;

    fn of(text: &str) -> SharedSettings {
        shared(&check("f", text).unwrap().config, "https://feeds.example.org").unwrap()
    }

    #[test]
    fn what_must_be_the_same_is_told_and_what_is_a_machines_own_is_not() {
        let token = "0123456789abcdef0123456789abcdef";
        let base = format!("[server]\nadmin_token = \"{token}\"\n");
        let own = of(&base);
        let of_machine =
            "listen = \"127.0.0.1:1\"\n[store]\npath = \"x\"\n[polling]\nuser_agent = \"a\"\n";
        assert_eq!(of(&format!("{base}{of_machine}")), own);
        let reader = |token: &str| {
            format!("{base}[[reader]]\nname = \"ann\"\nall_private = true\ntoken = \"{token}\"\n")
        };
        let others = [
            base.replace("abcdef", "fedcba"),
            format!("{base}[publish]\nversions = 7\n"),
            format!("{base}[[feed]]\nname = \"a\"\nurl = \"https://a.example/\"\n"),
            reader(token),
        ];
        for text in &others {
            assert_ne!(of(text), own, "{text}");
        }
        assert_ne!(of(&reader(token)), of(&reader(&token.replace('f', "e"))));
    }
}
