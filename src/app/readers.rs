//! The readers of private feeds, with their tokens from wherever those are.

use super::AppError;
use tidegate_config::{Config, ReaderToken};
use tidegate_core::model::SecretSource;
use tidegate_net::fetch;
use tidegate_serve::{ReaderAccess, ReaderKey};

/// Finds the token of a reader; what is wrong with it otherwise, without repeating it.
pub(super) fn find(source: &SecretSource) -> Result<ReaderToken, String> {
    let text = fetch::find_secret(source)?;
    ReaderToken::new(text.trim()).map_err(|error| format!("the token {error}"))
}

/// The readers of a configuration.
pub(super) fn readers(config: &Config) -> Result<Vec<ReaderAccess>, AppError> {
    let mut readers: Vec<ReaderAccess> = Vec::with_capacity(config.readers.len());
    for reader in &config.readers {
        let name = &reader.name;
        let Some(source) = &reader.token else { continue };
        let token = find(source)
            .map_err(|why| AppError::Input(format!("the reader {name} cannot come in: {why}")))?;
        let key = ReaderKey::new(token.reveal());
        if let Some(other) = readers.iter().find(|other| other.key == key) {
            let other = &other.name;
            return Err(AppError::Input(format!(
                "the readers {other} and {name} have the same token; each has its own"
            )));
        }
        readers.push(ReaderAccess {
            name: name.clone(),
            key,
            feeds: reader.feeds.iter().cloned().collect(),
            all_private: reader.all_private,
        });
    }
    Ok(readers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::check;

    #[test]
    fn tokens_are_found_where_they_are_and_never_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = |name: &str| {
            let file = path(name);
            let of = |reader: &str, file: &str| {
                format!(
                    "[[reader]]\nname = \"{reader}\"\ntoken_file = \"{file}\"\nall_private = true\n"
                )
            };
            std::fs::copy(&file, path("copy")).unwrap();
            check("f", &format!("{}{}", of("ann", &file), of("bob", &path("copy")))).unwrap().config
        };
        std::fs::write(path("good"), "0123456789abcdef0123456789abcdef\n").unwrap();
        std::fs::write(path("short"), "0123456789abcdef\n").unwrap();
        let said = readers(&config("good")).unwrap_err().report();
        assert!(said.contains("ann and bob have the same token"), "{said}");
        let said = readers(&config("short")).unwrap_err().report();
        assert!(said.contains("ann") && said.contains("may be guessed"), "{said}");
        assert!(!said.contains("0123456789"), "{said}");
        let mut one = config("good");
        one.readers.truncate(1);
        let [ann] = &readers(&one).unwrap()[..] else { panic!("one reader") };
        assert!(ann.name == "ann" && ann.all_private);
        assert!(ann.key == ReaderKey::new("0123456789abcdef0123456789abcdef"));
    }
}
