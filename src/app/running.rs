//! The gateway that runs: where it is, with which token it is asked, and calls of its API.

use super::{AppError, ConfigSource, ErrorContext, config_file, token};
use clap::Args;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_config::{self as config, Config, Overrides, ServerSection};
use tidegate_net::fetch::{self, ApiAnswer, ApiClient, FetchError};
use url::{Host, Url};

/// The longest answer that is read into memory, in bytes.
const ANSWER_LIMIT: usize = 64 * 1024 * 1024;
/// The longest answer that says what went wrong, in bytes.
const PROBLEM_LIMIT: usize = 64 * 1024;
/// The media type of what is sent.
const JSON: &str = "application/json";
/// The environment variable that has the address of the gateway.
const VARIABLE: &str = "TIDEGATE_URL";

/// Which gateway is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "The gateway")]
pub struct GatewayOptions {
    /// Its address [default: TIDEGATE_URL, else where the configuration says that it listens]
    #[arg(long, value_name = "URL", global = true)]
    pub gateway: Option<String>,
    /// A file with its admin token [default: as the gateway finds it]
    #[arg(long, value_name = "FILE", global = true)]
    pub token_file: Option<PathBuf>,
    /// Its configuration file [default: config/tidegate.toml where that exists]
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Its data folder, which may have its token [default: tidegate-data]
    #[arg(short, long, value_name = "DIR", global = true)]
    pub data: Option<PathBuf>,
}

impl GatewayOptions {
    /// The configuration of the gateway.
    pub fn settings(&self) -> ConfigSource {
        let overrides = Overrides { data: self.data.clone(), ..Overrides::default() };
        ConfigSource::File { path: config_file(self.config.clone()), overrides }
    }
}

/// A gateway that runs.
pub struct RunningGateway {
    base: Url,
    client: ApiClient,
}

impl RunningGateway {
    /// The gateway that the options name. Nothing is asked yet.
    pub fn find(options: &GatewayOptions) -> Result<Self, AppError> {
        let of_environment = || std::env::var(VARIABLE).ok().filter(|address| !address.is_empty());
        let named = options.gateway.clone().or_else(of_environment);
        let named = named.as_deref().map(base).transpose()?;
        let given = options.token_file.as_deref().map(token::read).transpose()?;
        let given = given.or_else(token::of_environment);
        if let (Some(base), Some(token)) = (&named, &given) {
            return Self::at(base.clone(), Some(token), None);
        }
        let config = options.settings().load()?.config;
        let is_own = named.as_ref().is_none_or(|named| is_own(named, &config));
        let token = match given {
            Some(token) => Some(token),
            // A stranger does not get this gateway's token.
            None if is_own => token::known_token(&config)?,
            None => None,
        };
        let base = named.map_or_else(|| administered(&config.server), Ok)?;
        Self::at(base, token.as_deref(), config.polling.ca_file.clone())
    }

    fn at(base: Url, token: Option<&str>, ca_file: Option<PathBuf>) -> Result<Self, AppError> {
        let client =
            ApiClient::new(&base, token, ca_file).context("the HTTP client could not be made")?;
        Ok(Self { base, client })
    }

    /// Its address, as it may be shown.
    pub fn shown(&self) -> String {
        fetch::shown(&self.base).trim_end_matches('/').to_owned()
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/api/v1{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Asks its API; `path` begins with what comes behind `/api/v1`, and `body` is a media type and a document. What it
    /// refuses is an error in its words.
    pub async fn open(
        &self,
        method: Method,
        (path, query): (&str, &[(&str, &str)]),
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<ApiAnswer, AppError> {
        let body = body.map(|(media_type, document)| (media_type, document.into()));
        let answer = self.client.send(method, self.url(path, query), body).await;
        let answer = answer.map_err(|error| self.unreached(error))?;
        match answer.status {
            200..=299 => Ok(answer),
            status => Err(self.refused(status, answer).await),
        }
    }

    /// The same with a body of JSON; the answer as a value, null where it has no body.
    pub async fn call(
        &self,
        method: Method,
        to: (&str, &[(&str, &str)]),
        body: Option<&Value>,
    ) -> Result<Value, AppError> {
        let body = body.map(|body| (JSON, body.to_string().into()));
        self.value(self.open(method, to, body).await?).await
    }

    /// What an answer says.
    pub(super) async fn value<T: DeserializeOwned>(
        &self,
        answer: ApiAnswer,
    ) -> Result<T, AppError> {
        let body = answer.whole(ANSWER_LIMIT).await.map_err(|error| self.unreached(error))?;
        let wrong = |error| AppError::run(format!("{} is no gateway", self.shown()), error);
        serde_json::from_slice(if body.is_empty() { b"null" } else { &body }).map_err(wrong)
    }

    /// Reads; the answer as it is written.
    pub async fn text(&self, to: (&str, &[(&str, &str)])) -> Result<String, AppError> {
        let answer = self.open(Method::GET, to, None).await?;
        let value: Box<RawValue> = self.value(answer).await?;
        Ok(value.get().to_owned())
    }

    /// The gateway did not answer, or not to the end.
    pub(super) fn unreached(&self, error: FetchError) -> AppError {
        let what = match &error {
            FetchError::Connect { .. } => {
                "no gateway answers at GATEWAY; start one, or name another with --gateway or \
                 TIDEGATE_URL"
            }
            _ => "the gateway at GATEWAY did not answer",
        };
        AppError::run(what.replace("GATEWAY", &self.shown()), error)
    }

    async fn refused(&self, status: u16, answer: ApiAnswer) -> AppError {
        if status == 401 {
            let said = format!(
                "the gateway at {} does not take this admin token, or needs one; name it with \
                 --token-file or {}",
                self.shown(),
                token::VARIABLE
            );
            return AppError::Refused { status, said };
        }
        let body = answer.whole(PROBLEM_LIMIT).await.unwrap_or_default();
        let problem: Option<Value> = serde_json::from_slice(&body).ok();
        let detail = problem.as_ref().and_then(|problem| problem.get("detail")?.as_str());
        let said = match detail {
            Some(detail) => detail.to_owned(),
            None => format!("{} answered {status} and is no gateway", self.shown()),
        };
        AppError::Refused { status, said }
    }
}

/// The address of a gateway that is named; what is not an address is the caller's mistake.
fn base(text: &str) -> Result<Url, AppError> {
    let wrong = |why: String| AppError::Input(format!("the address of the gateway is none: {why}"));
    let text = config::public_address(text).map_err(wrong)?;
    Url::parse(&text).map_err(|why| wrong(why.to_string()))
}

/// Whether it is a gateway of this configuration: on this machine, or at its public address.
fn is_own(named: &Url, config: &Config) -> bool {
    let is_here = match named.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback() || config.server.listen.ip() == address,
        Some(Host::Ipv6(address)) => address.is_loopback() || config.server.listen.ip() == address,
        None => false,
    };
    let public = config.server.public_url.as_deref().and_then(|url| Url::parse(url).ok());
    is_here || public.is_some_and(|public| public.origin() == named.origin())
}

/// Where the administration of a gateway is reached from this machine: at its own listener, where it has one.
/// That speaks no TLS; a certificate of the other one is for the public address.
fn administered(server: &ServerSection) -> Result<Url, AppError> {
    let (listen, key) = match server.admin_listen {
        Some(own) => (own, "admin_listen"),
        None => (server.listen, "listen"),
    };
    if let (None, true, Some(public)) =
        (server.admin_listen, server.speaks_tls(), &server.public_url)
    {
        return base(public);
    }
    if listen.port() == 0 {
        return Err(AppError::Input(format!(
            "server.{key} has port 0, so the gateway is at a port that only its output names; \
             name its address with --gateway or TIDEGATE_URL"
        )));
    }
    let address = reachable(listen);
    base(&match server.admin_listen {
        Some(_) => format!("http://{address}"),
        None => server.origin(address),
    })
}

/// How long the answer of a health check may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// `tidegate health`, as a container's health check does: asks `/healthz` where the gateway of this configuration listens. An error where it does not answer.
pub async fn health(settings: ConfigSource) -> Result<(), AppError> {
    let server = settings.load()?.config.server;
    let url = format!("{}/healthz", server.origin(reachable(server.listen)));
    match fetch::status_of(&url, ANSWER_TIME).await {
        Ok(200) => Ok(()),
        Ok(status) => {
            let what = format!("{url} does not say that the gateway lives");
            Err(AppError::run(what, format!("it answers {status}")))
        }
        Err(error) => Err(AppError::run(format!("{url} does not answer"), error)),
    }
}

/// Where this machine reaches what listens at an address.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let address = match listen.ip() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    SocketAddr::new(address, listen.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_asked_where_it_listens_and_a_token_goes_to_no_stranger() {
        let found = |server: &str| {
            let text = format!("[server]\n{}", server.replace(", ", "\n"));
            administered(&tidegate_config::check("f", &text).unwrap().config.server)
        };
        let tls = "listen = '0.0.0.0:81', tls_cert_file = 'a', tls_key_file = 'b'";
        for (server, address) in [
            ("listen = '127.0.0.1:8080'", "http://127.0.0.1:8080/"),
            ("listen = '0.0.0.0:80'", "http://127.0.0.1/"),
            ("listen = '[::]:81'", "http://[::1]:81/"),
            ("listen = '192.0.2.7:82'", "http://192.0.2.7:82/"),
            ("listen = '0.0.0.0:80', admin_listen = '0.0.0.0:8081'", "http://127.0.0.1:8081/"),
            (tls, "https://127.0.0.1:81/"),
            (&format!("{tls}, public_url = 'https://a.example'"), "https://a.example/"),
            (&format!("{tls}, admin_listen = '0.0.0.0:8081'"), "http://127.0.0.1:8081/"),
        ] {
            assert_eq!(found(server).unwrap().as_str(), address, "{server}");
        }
        assert!(found("listen = '127.0.0.1:0'").is_err());
        // A token goes to no stranger.
        let mut config = Config::default();
        config.server.public_url = Some("https://feeds.example.org/below".to_owned());
        for (address, own) in [
            ("http://localhost:9/", true),
            ("http://127.0.0.2:9/", true),
            ("http://[::1]/", true),
            ("https://feeds.example.org/", true),
            ("http://feeds.example.org/", false),
            ("https://feeds.example.org.evil.example/", false),
            ("http://192.0.2.1/", false),
        ] {
            assert_eq!(is_own(&Url::parse(address).unwrap(), &config), own, "{address}");
        }
        // What is no address is the caller's mistake.
        let gateway = Some("gateway".to_owned());
        let options = GatewayOptions { gateway, token_file: None, config: None, data: None };
        let found = RunningGateway::find(&options).map(|_| ());
        assert_eq!(found.map_err(|error| error.exit_status()), Err(2));
    }
}
