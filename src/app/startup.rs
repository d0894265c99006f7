//! What a start reads before it opens anything, for `serve`, for a reload and for `check`: the configuration, and
//! what that names and does not contain.

use super::{AppError, ConfigSource, names, outgoing, token};
use std::collections::HashMap;
use tidegate_config::{Checked, ConfigError, External, Fault, Faults, look_up};
use tidegate_core::trust::check_certificates;
use tidegate_net::fetch;
use tidegate_serve::TlsIdentity;
use tidegate_store::{PostgresRequest, in_words};

/// Reads the configuration and all that it names: secrets, tokens, certificates. What cannot be had is a fault at the
/// place that names it.
pub fn load(source: &ConfigSource) -> Result<Checked, AppError> {
    let checked = source.load()?;
    let mut tokens = HashMap::new();
    let mut faults = look_up(&checked, |place, external| match external {
        External::Secret(source) => fetch::find_secret(source).map(|_| ()),
        External::Database(source) => {
            let checked = PostgresRequest::check_address(&fetch::find_secret(source)?);
            checked.map_err(|error| in_words(&error).to_string())
        }
        External::AdminToken(source) => token::configured(source).map(drop),
        External::ReaderToken(source) => {
            let token = token::reader_token(source)?.reveal().to_owned();
            match tokens.insert(token, place.line) {
                Some(line) => Err(format!("is the token of line {line}; each reader has its own")),
                None => Ok(()),
            }
        }
        External::Certificates(path) => check_certificates(path),
        External::KeyPair { certificate, key } => {
            let loaded = TlsIdentity::load(certificate, key);
            loaded.map(|_| ()).map_err(|error| error.to_string())
        }
    });
    faults.extend(unnamed_listener(&checked));
    if let Some(faults) = Faults::from_list(faults) {
        return Err(ConfigError::Faults(faults).into());
    }
    token::check_kept(&checked.config)?;
    let public_url = checked.config.server.public_url.as_deref().unwrap_or_default();
    outgoing::services(outgoing::fetch_settings(&checked.config, public_url))?;
    Ok(checked)
}

/// The fault of a gateway that listens on all addresses and is not told under which one it is reached: every document
/// would name `http://0.0.0.0`.
fn unnamed_listener(checked: &Checked) -> Option<Fault> {
    let server = &checked.config.server;
    if server.public_url.is_some() || !server.listen.ip().is_unspecified() {
        return None;
    }
    let message = format!(
        "{} is every address of this machine and none that a reader can use; say under which address the gateway is \
         reached, with server.public_url, --public-url or TIDEGATE_SERVER_PUBLIC_URL",
        server.listen
    );
    Some(Fault { message, ..checked.place("server.listen") })
}

/// What the operator should know of a configuration that is good.
pub fn warnings(checked: &Checked) -> Vec<String> {
    let places = checked.warnings.iter().map(Fault::to_string);
    let polled_twice = names::polled_twice(&checked.config);
    places.chain(polled_twice).chain(token::separate_tokens(&checked.config)).collect()
}
