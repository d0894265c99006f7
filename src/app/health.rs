//! `tidegate health`: asks the gateway on this machine whether it lives, as a container's health check does.

use super::running::reachable;
use super::{AppError, ConfigSource};
use std::time::Duration;
use tidegate_net::fetch;

/// How long the answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Asks `/healthz` where the gateway of this configuration listens. An error where it does not answer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_reached_at_this_machine() {
        for (listen, asked) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), asked);
        }
    }
}
