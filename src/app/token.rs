//! The administration token: configured, from the environment, or made at the first start; and the tokens of readers.

use super::export::write_file;
use super::{AppError, ErrorContext, disk};
use std::io::Read;
use std::path::Path;
use tidegate_config::{Config, ReaderToken, StoreKind, check_admin_token};
use tidegate_core::model::{SecretSource, SecretText};
use tidegate_net::fetch;
use tidegate_serve::{AdminToken, ReaderAccess, ReaderKey};

/// The environment variable that has the token.
pub(super) const VARIABLE: &str = "TIDEGATE_ADMIN_TOKEN";
/// The file in the data folder that a random token is written to.
pub(super) const FILE: &str = "admin-token";
/// Random bytes of a token that is made here.
const RANDOM_BYTES: usize = 32;
/// Random bytes of one that is copied by hand: of a reader, and of a demonstration.
const SHORT_BYTES: usize = 16;
/// The most bytes that are read of a token file.
const FILE_LIMIT: u64 = 4096;

/// Finds the token, or makes one and says where it is. `before`: what was in force before a reload. A token that was made
/// for a gateway that keeps nothing stays as long as none is configured.
pub(super) fn admin_token(
    config: &Config,
    before: Option<(&Config, &AdminToken)>,
) -> Result<AdminToken, AppError> {
    let stays = !disk::keeps(config) && config.server.admin_token.is_none();
    let is_unset = |before: &Config| before.server.admin_token.is_none();
    if let Some((_, token)) = before.filter(|(before, _)| stays && is_unset(before)) {
        return Ok(token.clone());
    }
    let token = match &config.server.admin_token {
        Some(source) => configured(source).map_err(|why| of_no_use(&why))?,
        None => {
            checked(&config.store.path.join(FILE), |path| kept_or_made(path, disk::keeps(config)))?
        }
    };
    AdminToken::new(&token).map_err(|why| of_no_use(&why.to_string()))
}

/// That a token which an earlier start has made is one still, where the next start takes it.
pub(super) fn check_kept(config: &Config) -> Result<(), AppError> {
    let path = config.store.path.join(FILE);
    if config.server.admin_token.is_none() && disk::keeps(config) && path.exists() {
        checked(&path, read_own)?;
    }
    Ok(())
}

/// The token of this file, once it is one.
fn checked(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<String, AppError>,
) -> Result<String, AppError> {
    let token = read(path)?;
    let is_one = check_admin_token(&token);
    is_one.map_err(|why| of_no_use(&format!("{}: {why}", path.display()))).map(|()| token)
}

fn of_no_use(why: &str) -> AppError {
    AppError::Input(format!("the administration token is of no use: {why}"))
}

/// The token that a configuration names, or what is wrong with it, without repeating it.
pub(super) fn configured(source: &SecretSource) -> Result<String, String> {
    let token = match source {
        SecretSource::File(path) => read(Path::new(path)).map_err(|error| error.report())?,
        source => fetch::find_secret(source)?,
    };
    check_admin_token(&token).map(|()| token)
}

/// The token of a gateway that runs, for who asks it; `None` where nothing says it. Nothing is made.
pub(super) fn known_token(config: &Config) -> Result<Option<String>, AppError> {
    let path = config.store.path.join(FILE);
    match &config.server.admin_token {
        Some(source) => configured(source).map(Some).map_err(AppError::Input),
        None => path.exists().then(|| read_own(&path)).transpose(),
    }
}

/// A warning where each gateway over one database would make a token of its own: a load balancer sends a request to any
/// of them. A gateway that is alone has its token, and goes on.
pub(super) fn separate_tokens(config: &Config) -> Option<String> {
    let is_unset = config.server.admin_token.is_none();
    let is_concerned = is_unset && config.store.kind == StoreKind::Postgres;
    is_concerned.then(|| {
        format!(
            "no administration token is configured, so that each gateway over the database makes \
             one of its own: behind a load balancer most calls of the API would be answered with \
             401. Where there are several gateways, give all the same token, with \
             server.admin_token, server.admin_token_file or {VARIABLE}"
        )
    })
}

/// The token of the environment; an empty one is none.
pub(super) fn of_environment() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|token| !token.is_empty())
}

/// The token of a demonstration with this data folder, which tells it to its visitor: what the configuration says of
/// it, and what a shell is to be given for it. `None`: what the gateway keeps in the folder once it runs, see [`kept`].
pub(super) fn of_demo(
    data: Option<&Path>,
) -> Result<(Option<SecretSource>, Option<String>), AppError> {
    if of_environment().is_some() {
        let source = SecretSource::Env(VARIABLE.to_owned());
        let wrong = |why| AppError::Input(format!("{VARIABLE} is of no use: {why}"));
        configured(&source).map_err(wrong)?;
        // It is not written to a terminal: its visitor has it.
        return Ok((Some(source), Some(format!("${VARIABLE}"))));
    }
    if data.is_some() {
        return Ok((None, None));
    }
    let made = random_reader_token()?;
    let text = SecretText::new(&made).context("a token could not be made")?;
    Ok((Some(SecretSource::Literal(text)), Some(made)))
}

/// The token that a gateway keeps in its data folder.
pub(super) fn kept(data: &Path) -> Result<String, AppError> {
    read_own(&data.join(FILE))
}

/// A token for a reader, or one that is copied by hand.
pub fn random_reader_token() -> Result<String, AppError> {
    random_token(SHORT_BYTES)
}

fn random_token(bytes: usize) -> Result<String, AppError> {
    let mut random = vec![0_u8; bytes];
    getrandom::fill(&mut random).context("the system has no random numbers")?;
    Ok(data_encoding::HEXLOWER.encode(&random))
}

/// The token in a file that the operator names.
pub(super) fn read(path: &Path) -> Result<String, AppError> {
    read_file(path).map_err(|error| AppError::Input(format!("{}: {error}", unread(path))))
}

/// The token in the file of the gateway itself: where that cannot be read, another start may succeed.
fn read_own(path: &Path) -> Result<String, AppError> {
    read_file(path).context(unread(path))
}

fn unread(path: &Path) -> String {
    format!("the administration token cannot be read from {}", path.display())
}

fn read_file(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_LIMIT).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

fn kept_or_made(path: &Path, keeps: bool) -> Result<String, AppError> {
    if keeps && path.exists() {
        return read_own(path);
    }
    let token = random_token(RANDOM_BYTES)?;
    if keeps {
        write_file(path, 0o600, &[token.as_bytes(), b"\n"])
            .context(format!("the administration token cannot be written to {}", path.display()))?;
        tracing::info!(path = %path.display(), "no administration token is configured; made one");
    } else {
        tracing::info!(
            "no administration token is configured and nothing is kept; administration is closed"
        );
    }
    Ok(token)
}

/// Finds the token of a reader; what is wrong with it otherwise, without repeating it.
pub(super) fn reader_token(source: &SecretSource) -> Result<ReaderToken, String> {
    let text = fetch::find_secret(source)?;
    ReaderToken::new(text.trim()).map_err(|error| format!("the token {error}"))
}

/// The readers of a configuration. That each has a token of its own was checked when it was loaded.
pub(super) fn readers(config: &Config) -> Result<Vec<ReaderAccess>, AppError> {
    let mut readers: Vec<ReaderAccess> = Vec::with_capacity(config.readers.len());
    for reader in &config.readers {
        let name = &reader.name;
        let Some(source) = &reader.token else { continue };
        let token = reader_token(source)
            .map_err(|why| AppError::Input(format!("the reader {name} cannot come in: {why}")))?;
        readers.push(ReaderAccess {
            name: name.clone(),
            key: ReaderKey::new(token.reveal()),
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
    fn a_made_token_is_kept_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let token = kept_or_made(&path, true).unwrap();
        assert_eq!(token.len(), 64);
        assert_eq!(kept_or_made(&path, true).unwrap(), token);
        assert_ne!(kept_or_made(&path, false).unwrap(), token);
        #[cfg(unix)]
        {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        // One that cannot be read is no wrong input: a service manager starts the gateway again then.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::create_dir(&path).unwrap();
        let error = kept_or_made(&path, true).unwrap_err();
        assert!(error.report().contains(FILE), "{}", error.report());
        assert_eq!(error.exit_status(), 1);
    }

    #[test]
    fn the_token_of_a_demonstration_is_told_and_another_each_time() {
        let made = || match of_demo(None).unwrap() {
            (Some(SecretSource::Literal(token)), shown) => {
                assert_eq!(shown.as_deref(), Some(token.reveal()));
                token
            }
            other => panic!("none was made: {other:?}"),
        };
        let (one, other) = (made(), made());
        assert_ne!(one, other);
        assert_eq!(one.reveal().len(), 2 * SHORT_BYTES);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_demo(Some(folder.path())).unwrap(), (None, None));
        let token = kept_or_made(&folder.path().join(FILE), true).unwrap();
        assert_eq!(kept(folder.path()).unwrap(), token);
    }

    #[test]
    fn gateways_over_one_database_are_to_have_one_token() {
        let of = |text: &str| separate_tokens(&check("f", text).unwrap().config);
        let database = "[store]\nkind = \"postgres\"\nurl = \"postgresql://db/feeds\"\n";
        let said = of(database).unwrap();
        assert!(said.contains("401") && said.contains("TIDEGATE_ADMIN_TOKEN"), "{said}");
        for token in
            ["admin_token = \"0123456789abcdef0123456789abcdef\"", "admin_token_file = \"x\""]
        {
            assert_eq!(of(&format!("{database}[server]\n{token}\n")), None);
        }
        assert_eq!(of(""), None);
    }

    #[test]
    fn tokens_are_found_where_they_are_and_never_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let of_file = format!("token = {{ file = {file:?} }}");
        let text = format!("[[reader]]\nname = \"ann\"\nall_private = true\n{of_file}\n");
        let config = check("f", &text).unwrap().config;
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        let said = readers(&config).unwrap_err().report();
        assert!(said.contains("ann") && said.contains("may be guessed"), "{said}");
        assert!(!said.contains("0123456789"), "{said}");
        std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
        let [ann] = &readers(&config).unwrap()[..] else { panic!("one reader") };
        assert!(ann.name == "ann" && ann.all_private);
        assert!(ann.key == ReaderKey::new("0123456789abcdef0123456789abcdef"));
    }
}
