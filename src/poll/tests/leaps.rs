use super::*;
use tidegate_core::clock::Clock;

/// A leap ahead causes early polls. Later polls, also after the clock is corrected, keep the usual interval.
#[tokio::test(start_paused = true)]
async fn a_clock_that_leaps_by_years_and_back_changes_no_interval_for_long() {
    let gateway = Gateway::with_news("one").await;
    let (texts, mut polls) = (["two", "three", "four", "five", "six", "seven"], 1);
    let mut texts = texts.iter().cycle();
    let mut next = async |from: Time, by: u64| {
        gateway.clock.leap(from.plus(Duration::from_secs(by)));
        let text = texts.next().unwrap();
        gateway.publisher.says(*text, text);
        polls += 1;
        gateway.polls("news", polls).await;
        let now = gateway.clock.now();
        eventually(|| gateway.status().next.is_some_and(|next| next.at > now)).await;
        gateway.status().next.unwrap().at.since(now)
    };
    let usual = next(gateway.status().next.unwrap().at, 0).await;
    let year = 365 * 86_400;
    // The clock leaps years ahead and back: no poll is planned years away.
    let ahead = next(gateway.status().next.unwrap().at, 30 * year).await;
    assert!(ahead <= Duration::from_secs(86_400), "{ahead:?}");
    let (due, back) = (gateway.status().next.unwrap().at, Duration::from_secs(30 * year));
    gateway.clock.leap(gateway.clock.now().minus(back));
    eventually(|| gateway.status().next.is_some_and(|next| next.at == due.minus(back))).await;
    let mut found = ahead;
    for _ in 0..16 {
        found = next(gateway.status().next.unwrap().at, 0).await;
    }
    assert!(found <= usual.max(Duration::from_secs(1800)) * 2, "{usual:?} {found:?}");
}

/// Times stored before the clock was set back must not delay a poll beyond the longest pause.
#[tokio::test(start_paused = true)]
async fn a_pause_from_a_time_to_come_is_no_longer_than_any() {
    let gateway = Gateway::with_news("one").await;
    gateway.clock.leap(later(30 * 365 * 86_400));
    gateway.publisher.fails(status_error(503, Some(Duration::from_secs(86_400))));
    gateway.poll().await;
    let store = gateway.stop().await;
    let publisher = Publisher::new("one");
    let gateway = Gateway::start(&store, &publisher).await;
    let most = Duration::from_secs(8 * 86_400);
    assert!(gateway.status().next.is_some_and(|next| next.at <= NOW.plus(most)));
    gateway.clock.set(NOW.plus(most));
    eventually(|| pauses::is_put_off(&gateway, "news", 86_400)).await;
    assert!(gateway.status().next.unwrap().at <= NOW.plus(most + Duration::from_secs(86_460)));
}
