use super::*;
use crate::postgres::session::LEASE;
use crate::testing::TestSchema;

/// What is large is read a few at a time, and all of it in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_read_takes_so_many_bytes_and_no_more() {
    let Some(schema) = TestSchema::new() else { return };
    let session = Session::open(&schema.url, LEASE).unwrap();
    let node = session.shared().node;
    let large = format!("decode(repeat('00', {}), 'hex')", 9 << 20);
    let insert = |node: i64, from: i64, body: &str, answer: &str| {
        let to = from + 3;
        schema.sql(&format!(
            "INSERT INTO tidegate_request (node, number, asked_at, body, answer) \
            SELECT {node}, number, number, {body}, {answer} \
            FROM generate_series({from}, {to}) AS numbers (number)"
        ));
    };
    insert(node, 1, "''", &large);
    insert(7, 11, &large, "NULL");
    schema.sql("INSERT INTO tidegate_node (node, name, beat_at) VALUES (7, 'another', 0)");
    let read = async || {
        session
            .run_async("read", |shared| async move {
                let answers = shared.answers().await?;
                let begun = BegunRequests::default();
                let taken = shared.take_requests(0, 0, &begun).await?;
                let mut taken: Vec<i64> = taken.iter().map(|request| request.key.1).collect();
                taken.sort_unstable();
                let answered = answers.into_iter().map(|(number, _)| number);
                Ok((answered.collect::<Vec<i64>>(), taken))
            })
            .await
            .unwrap()
    };
    assert_eq!(read().await, (vec![1, 2], vec![11, 12]));
    schema.sql("DELETE FROM tidegate_request WHERE number IN (1, 2, 11)");
    assert_eq!(read().await, (vec![3, 4], vec![12, 13]));
    schema.sql("DELETE FROM tidegate_request WHERE number < 14");
    assert_eq!(read().await, (vec![], vec![14]));
}
