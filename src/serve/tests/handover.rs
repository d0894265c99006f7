//! What a site hands on to the one that takes its place, and what was open goes on there.

use super::private::{ANN, BOB, SECRET, announcing, readers, site};
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_site_hands_on_what_the_next_one_would_make_alike_and_what_is_open() {
    let before = site();
    assert_eq!(before.get("/feeds/news").await.status(), 200);
    let misses = |site: &Site| site.app.metrics.misses.get();
    let next = before.followed_by(ServeSettings { readers: Vec::new(), ..announcing() });
    assert_eq!(next.get("/feeds/news").await.status(), 200);
    assert_eq!((misses(&next), misses(&before)), (1, 1));
    problem(next.get(&format!("/t/{ANN}/feeds/{SECRET}")).await, 404).await;
    let other = next.followed_by(with(announcing(), |it| it.publish.absolute_urls = true));
    assert_eq!(other.get("/feeds/news").await.status(), 200);
    assert_eq!(misses(&next), 2, "it is written anew");
    // What is open counts at the next site.
    let first = site();
    let stream = first.get("/events").await;
    let body = first.get("/feeds/news").await;
    let held = first.app.bodies.held();
    assert_eq!((first.app.event_streams.open_streams(), held.0), (1, 1));
    let few = || with(announcing(), |it| (it.connections, it.server.memory) = (4, 64 << 20));
    let next = first.followed_by(few()).followed_by(few());
    assert_eq!((next.app.event_streams.open_streams(), next.app.bodies.held()), (1, held));
    assert_eq!(next.app.bodies.shares().all, 64 << 20);
    let full = text(next.get("/events").await).await;
    assert!(full.contains("which is the limit"), "a quarter of four: {full}");
    drop((stream, body));
    tokio::task::yield_now().await;
    assert_eq!(next.app.bodies.held(), (0, 0));
    let mut more = next.get("/events").await.into_body();
    assert!(more.frame().await.is_some());
    assert_eq!(next.app.event_streams.open_streams(), 1);
    // A listener goes on whatever site is in force, and so do its connections: those of one client are its share still.
    let first = site();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (handle, shutdown) = (SiteHandle::new(&first.app), CancellationToken::new());
    let _server = tokio::spawn(handle.clone().serve(listener, shutdown.clone()));
    let open = async || {
        // What is closed at once may be reset.
        let mut stream = TcpStream::connect(at).await.ok()?;
        stream.write_all(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
        let read = stream.read(&mut [0; 64]).await.unwrap_or_default();
        (read > 0).then_some(stream)
    };
    let own = open().await;
    assert!(own.is_some());
    let settings = ServeSettings { connections: 16, ..announcing() };
    let parts = parts(Arc::clone(&first.app.operator), settings);
    let parts = ServerConfig { before: Some(handle), ..parts };
    SiteHandle::put_in_force(parts, shutdown.child_token());
    let second = open().await;
    assert!(second.is_some() && open().await.is_none(), "two of sixteen are one client's");
    drop(own);
    while open().await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_ends_what_is_open_and_all_else_goes_on_over_a_reload() {
    let site = site();
    let stream = site.get(&format!("/t/{ANN}/events")).await;
    assert_eq!(stream.status(), 200);
    let bobs = site.get(&format!("/t/{BOB}/events")).await;
    let everybodys = site.get("/events?feed=news").await;
    let waits = format!("/t/{ANN}/changes?after=3&wait=20");
    let bob_waits = format!("/t/{BOB}/changes?after=3&wait=20");
    let begun = tokio::time::Instant::now();
    let public_url = "https://other.example".to_owned();
    let poll = async |path: &str| (site.get(path).await, begun.elapsed());
    let polls = async { tokio::join!(poll(&waits), poll(&bob_waits)) };
    let end_of_stream = async { (text(stream).await, begun.elapsed()) };
    let announced = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let readers = vec![readers().remove(1)];
        let next = site.followed_by(ServeSettings { readers, public_url, ..announcing() });
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Who keeps the token keeps what is open, at the site in force.
        next.store.announce(0, &["other-secret", SECRET, "news"]);
        next
    };
    let ((ann, bob), (said, ended), next) = tokio::join!(polls, end_of_stream, announced);
    assert_eq!((ann.1, ended), (Duration::from_secs(3), Duration::from_secs(3)));
    problem(ann.0, 404).await;
    assert!(said.starts_with("retry:"), "{said}");
    assert_eq!((bob.0.status(), bob.1), (StatusCode::OK, Duration::from_secs(4)));
    let own = format!("https://other.example/t/{BOB}/feeds/other-secret");
    let line = text(bob.0).await;
    line.assert_shows(&[&own]);
    line.assert_lacks(&[SECRET]);
    for (stream, shown) in [(bobs, &*own), (everybodys, "https://other.example/feeds/news")] {
        let (mut body, mut said) = (stream.into_body(), String::new());
        while !said.contains("event: change") {
            let frame = body.frame().await.unwrap().unwrap();
            said.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap()));
        }
        said.assert_shows(&[shown]);
        said.assert_lacks(&[SECRET]);
    }
    assert_eq!(begun.elapsed(), Duration::from_secs(4));
    problem(next.get(&format!("/t/{ANN}/feeds/{SECRET}")).await, 404).await;
    // Nor does a stream tell anything more.
    let site = self::site();
    let mut stream = site.get(&format!("/t/{ANN}/events")).await.into_body();
    assert!(stream.frame().await.is_some());
    site.store.announce(0, &[SECRET]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let readers = vec![readers().remove(1)];
    let _next = site.followed_by(ServeSettings { readers, ..announcing() });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(stream.frame().await.is_none());
}
