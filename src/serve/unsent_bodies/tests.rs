//! Bodies on their way, by counting.

use super::body::PIECE;
use super::*;
use http_body_util::BodyExt as _;

fn client(last: u8) -> Client {
    Client::at([192, 0, 2, last].into())
}

fn document(bytes: usize) -> Bytes {
    vec![0; bytes].into()
}

#[tokio::test]
async fn a_document_counts_once_and_until_its_last_byte_has_gone() {
    let bodies = Bodies::within((1 << 20, 1 << 20));
    let whole = document(40_000);
    let send = |to| bodies.send(client(to), None, whole.clone()).unwrap();
    let (mut one, other) = (send(1), send(2));
    assert_eq!(bodies.held(), (2, 40_000));
    drop(other);
    let mut pieces = Vec::new();
    while let Some(piece) = one.frame().await {
        pieces.push(piece.unwrap().into_data().unwrap());
    }
    let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
    assert_eq!(lengths, [PIECE, PIECE, 40_000 - 2 * PIECE]);
    assert_eq!(pieces[1].as_ptr(), whole[PIECE..].as_ptr(), "nothing is copied");
    drop(one);
    pieces.truncate(1);
    let part = pieces[0].slice(9..10);
    pieces.clear();
    assert_eq!(bodies.held(), (1, 40_000), "a byte of it is still somewhere");
    drop(part);
    assert_eq!(bodies.held(), (0, 0));
    assert!(bodies.table().clients.is_empty());
}

#[test]
fn a_client_has_its_share_and_the_greatest_gives_way() {
    let bodies = Bodies::within((100, 50));
    let connections = [(); 3].map(|()| Connection::new());
    let send = |to: u8, connection: usize, bytes| {
        bodies.send(client(to), connections.get(connection).cloned(), document(bytes))
    };
    let first = send(1, 0, 20).unwrap();
    let second = send(1, 1, 20).unwrap();
    let third = send(1, 1, 10).unwrap();
    assert_eq!(send(1, 0, 1).err(), Some(SendRefusal::Client));
    let large = send(2, 2, 50).unwrap();
    assert!(!connections.iter().any(Connection::is_cut));
    // Room for a third is made by one of those that have more.
    let other = send(3, 9, 40).unwrap();
    let cut = connections.iter().filter(|connection| connection.is_cut()).count();
    assert!((1..3).contains(&cut), "{cut}: both have more than the newcomer");
    let (_, bytes) = bodies.held();
    assert!(bytes <= 100, "{bytes}");
    drop((first, second, third, large, other));
    assert_eq!(bodies.held(), (0, 0));
    // What is more than everything goes out alone.
    let huge = send(1, 9, 1000).unwrap();
    assert_eq!(send(1, 9, 1).err(), Some(SendRefusal::Client));
    drop(huge);
}

#[test]
fn nobody_gives_way_to_one_that_has_more() {
    let bodies = Bodies::within((100, 50));
    let held: Vec<_> =
        (0..10).map(|number| bodies.send(client(number), None, document(10)).unwrap()).collect();
    assert_eq!(bodies.send(client(11), None, document(20)).err(), Some(SendRefusal::All));
    assert_eq!(bodies.held(), (10, 100));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_taken_ends_its_connection() {
    let bodies = Bodies::within((1 << 20, 1 << 20));
    let connections = [(); 2].map(|()| Connection::new());
    let send = |at: usize| {
        bodies.send(client(1), Some(connections[at].clone()), document(40_000)).unwrap()
    };
    let (_still, mut taken, _also) = (send(0), send(1), send(0));
    let limit = Duration::from_secs(60);
    tokio::time::sleep(limit / 2).await;
    drop(taken.frame().await);
    tokio::time::sleep(limit / 2).await;
    bodies.cut_untaken(limit);
    assert!(connections[0].is_cut() && !connections[1].is_cut());
    assert_eq!(bodies.held(), (1, 40_000));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_move_gives_way_before_who_does() {
    let bodies = Bodies::within((100_000, 100_000));
    let connections = [(); 4].map(|()| Connection::new());
    let send = |at: usize, whole: &Bytes| {
        let last = u8::try_from(at).unwrap();
        bodies.send(client(last), connections.get(at).cloned(), whole.clone())
    };
    let shared = document(30_000);
    let mut moving = send(0, &document(60_000)).unwrap();
    let (_still, _also) = (send(1, &shared).unwrap(), send(2, &shared).unwrap());
    tokio::time::sleep(Duration::from_millis(STILL)).await;
    drop(moving.frame().await);
    let mut small = Vec::new();
    for _ in 0..40 {
        small.push(send(3, &document(1000)).unwrap());
    }
    let cut: Vec<bool> = connections.iter().map(Connection::is_cut).collect();
    assert_eq!(
        cut,
        [false, true, true, false],
        "who has most moves; a document goes with all its takers"
    );
    assert_eq!(bodies.held(), (41, 100_000));
}

#[tokio::test(start_paused = true)]
async fn what_frees_nothing_is_not_cut() {
    let bodies = Bodies::within((100_000, 100_000));
    let connections = [(); 3].map(|()| Connection::new());
    let send = |at: usize, whole: &Bytes| {
        let last = u8::try_from(at).unwrap();
        bodies.send(client(last), connections.get(at).cloned(), whole.clone())
    };
    let shared = document(70_000);
    let (mut one, _other) = (send(0, &shared).unwrap(), send(1, &shared).unwrap());
    let _alone = send(2, &document(30_000)).unwrap();
    let is_cut = || connections.each_ref().map(Connection::is_cut);
    for bytes in [1000; 20] {
        let _ = send(9, &document(bytes)).unwrap();
    }
    assert_eq!(is_cut(), [false, false, true], "it alone has what it takes");
    // Of the document of two, one moves: neither is cut, however long the other waits.
    tokio::time::sleep(Duration::from_millis(STILL)).await;
    drop(one.frame().await);
    let _more = send(9, &document(20_000)).unwrap();
    assert_eq!(send(9, &document(11_000)).err(), Some(SendRefusal::All));
    // Nor does a connection give way to what goes out on it.
    tokio::time::sleep(Duration::from_millis(STILL)).await;
    assert_eq!(send(0, &document(11_000)).err(), Some(SendRefusal::All));
    assert_eq!(is_cut(), [false, false, true]);
    let last = bodies.send_anyway(client(9), None, document(11_000));
    assert_eq!(bodies.held(), (4, 101_000), "how an action ended is said");
    drop(last);
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_while_others_of_its_connection_move() {
    let bodies = Bodies::within((1 << 20, 1 << 20));
    let connection = Connection::new();
    let send = |bytes| bodies.send(client(1), Some(connection.clone()), document(bytes)).unwrap();
    let (_waits, mut moves) = (send(40_000), send(400_000));
    let limit = Duration::from_secs(60);
    for _ in 0..6 {
        tokio::time::sleep(limit / 2).await;
        drop(moves.frame().await);
        bodies.cut_untaken(limit);
    }
    assert!(!connection.is_cut());
    assert_eq!(bodies.held(), (2, 440_000));
    // To ask for more is not to take.
    tokio::time::sleep(limit / 2).await;
    let _more = send(1000);
    tokio::time::sleep(limit / 2).await;
    bodies.cut_untaken(limit);
    assert!(connection.is_cut());
    assert_eq!(bodies.held(), (0, 0));
}
