//! What a site is told of its public name: the same by every request that is passed on and by every poll, and nothing
//! that a client may choose.

use crate::origins::{ATOM, Front, HOST, TOKEN, typed};
use crate::support::{self, Post, post};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use reqwest::{Client, Method, StatusCode};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A site that answers by the headers of a request, and by how many came before; and these headers.
struct NamingSite {
    url: String,
    asked: Arc<Mutex<Vec<HeaderMap>>>,
}

impl NamingSite {
    async fn start(answer: fn(&Request, u32) -> Response) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let noted = Arc::clone(&asked);
        let app = axum::Router::new().fallback(move |request: Request| {
            let mut noted = noted.lock().unwrap();
            let before = u32::try_from(noted.len()).unwrap();
            noted.push(request.headers().clone());
            let answered = answer(&request, before);
            async move { answered }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, asked }
    }

    /// A gateway through which requests for it are passed.
    async fn front(&self, more: &str) -> Front {
        let origin = format!(
            "[[origin]]\nname = \"blog\"\nurl = \"{}\"\nhost = \"{HOST}\"\npass = true\n{more}",
            self.url
        );
        Front::start(&origin, Some(HOST)).await
    }

    /// Each request's header of a name.
    fn told(&self, name: &str) -> Vec<Option<String>> {
        let text = |headers: &HeaderMap| Some(headers.get(name)?.to_str().unwrap().to_owned());
        self.asked.lock().unwrap().iter().map(text).collect()
    }
}

fn text_of(request: &Request, name: &str) -> Option<String> {
    Some(request.headers().get(name)?.to_str().unwrap().to_owned())
}

/// A feed with so many entries, whose addresses and ids have the name of the site.
fn named_feed(name: &str, entries: u32) -> Response {
    let entry = |day: u32| {
        let id = format!("http://{name}/entry-{day}");
        Post { link: id.clone(), id, ..post(day) }
    };
    typed(ATOM, support::atom(name, &(1..=entries).map(entry).collect::<Vec<_>>()))
}

/// Has the gateway poll its only feed.
async fn poll(front: &Front) {
    let feeds = front.feeds().await;
    let name = feeds.values().next().unwrap();
    let url = format!("http://{}/api/v1/feeds/{name}/poll", front.gateway.address());
    let polled = Client::new().post(url).bearer_auth(TOKEN).send().await.unwrap();
    assert!(polled.status().is_success(), "{}", polled.status());
}

async fn text(front: &Front, path: &str) -> String {
    let answer = front.ask(Method::GET, path).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK, "{path}");
    answer.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_says_what_a_site_is_called_in_a_feed() {
    let site = NamingSite::start(|request, before| {
        let name = text_of(request, "x-forwarded-host").or_else(|| text_of(request, "host"));
        named_feed(&name.unwrap(), 3 + before)
    })
    .await;
    let front = site.front("").await;
    let mut socket = TcpStream::connect(front.gateway.address()).await.unwrap();
    let head = format!(
        "GET /atom.xml HTTP/1.1\r\nhost: {HOST}:1337\r\nx-forwarded-host: evil.example\r\n\
         forwarded: host=evil.example\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut first = String::new();
    socket.read_to_string(&mut first).await.unwrap();
    assert!(first.contains(&format!("http://{HOST}/entry-3")), "{first}");
    assert!(!first.contains("1337") && !first.contains("evil"), "{first}");
    let made = front.made("/atom.xml").await;
    assert!(made.contains(&format!("http://{HOST}/entry-4")), "{made}");
    let before = site.told("forwarded").len();
    poll(&front).await;
    let second = text(&front, "/atom.xml").await;
    assert!(second.contains(&format!("http://{HOST}/entry-{}", before + 3)), "{second}");
    assert!(!second.contains("http://127.0.0.1"), "{second}");
    for (name, value) in [("x-forwarded-host", HOST), ("x-forwarded-proto", "http")] {
        assert_eq!(site.told(name), vec![Some(value.to_owned()); before + 1], "{name}");
    }
    let forwarded = site.told("forwarded");
    let own = format!("host={HOST};proto=http");
    assert_eq!(forwarded[0], Some(format!("for=127.0.0.1;{own}")));
    assert_eq!((&forwarded[1], &forwarded[before]), (&Some(own.clone()), &Some(own)));
    assert_eq!(site.told("x-forwarded-for")[1], None);
    front.gateway.stop().await.unwrap();
}
