//! Gateways in this process, each in front of a publisher or of the next.

use axum::response::IntoResponse;
use std::sync::{Arc, Mutex};
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_core::model::FeedName;

/// A publisher of one document, which can be changed.
pub struct Paper {
    pub text: Arc<Mutex<String>>,
    pub url: String,
}

impl Paper {
    pub async fn start(media_type: &'static str, text: &str) -> Self {
        let text = Arc::new(Mutex::new(text.to_owned()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
        let held = Arc::clone(&text);
        let app = axum::Router::new().fallback(move || {
            let text = held.lock().unwrap().clone();
            async move { ([("content-type", media_type)], text).into_response() }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { text, url }
    }

    pub fn print(&self, text: &str) {
        *self.text.lock().unwrap() = text.to_owned();
    }
}

/// The name of the one feed of each.
pub fn name() -> FeedName {
    FeedName::new("news").unwrap()
}

/// A gateway of one feed; `more`: what its configuration says of it beside the address.
pub async fn gateway(endpoint: &str, url: &str, more: &str) -> Gateway {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nkind = \"memory\"\n[publish]\n\
         endpoint = \"{endpoint}\"\n[polling]\nallow_private = true\nhost_spacing = \"0s\"\n\
         min_interval = \"1d\"\n[websub]\nhub = false\nsubscribe = false\n[[feed]]\nname = \"news\"\n\
         url = \"{url}\"\n{more}"
    );
    let config = config::check("t.toml", &text).unwrap_or_else(|faults| panic!("{faults}")).config;
    Gateway::start(&config, Outside::default()).await.unwrap()
}

pub async fn poll(gateway: &Gateway) {
    let report = gateway.operator().poll_now(&name()).await.unwrap();
    assert_eq!(report.error, None, "{report:?}");
}

/// The address of a view.
pub fn address(gateway: &Gateway, view: &str) -> String {
    format!("http://{}/feeds/news{view}", gateway.address())
}

/// What is served there.
pub async fn get(gateway: &Gateway, view: &str) -> String {
    let answer = reqwest::get(address(gateway, view)).await.unwrap();
    assert!(answer.status().is_success(), "{view}: {}", answer.status());
    answer.text().await.unwrap()
}
