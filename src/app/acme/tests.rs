//! When a certificate is due, what is done with one that is of no use or cannot be kept, and how often it is tried.

use super::*;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt as _;
use tidegate_core::clock::ManualClock;
use tokio::time::Instant;

/// 2030-01-01T00:00:00Z.
const NOW: Time = Time::from_unix(1_893_456_000);

/// A certificate for `a.example` with its key, from the start of 2030 until a day of it.
fn certificate(month: u8, day: u8) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2030, 1, 1);
    params.not_after = date_time_ymd(2030, month, day);
    key.serialize_pem() + &params.self_signed(&key).unwrap().pem()
}

/// What an authority answers, in turn; and how often it was asked.
#[derive(Clone, Default)]
struct Script(Arc<Mutex<ScriptState>>);

#[derive(Default)]
struct ScriptState {
    answers: VecDeque<Result<String, RenewalError>>,
    asked: u32,
}

impl Script {
    fn of(answers: impl IntoIterator<Item = Result<String, RenewalError>>) -> Self {
        let state = ScriptState { answers: answers.into_iter().collect(), asked: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    fn asked(&self) -> u32 {
        self.0.lock().unwrap().asked
    }
}

#[async_trait]
impl CertificateSource for Script {
    async fn order(
        &self,
        _: &[String],
        _: &(dyn Fn(NameDigests) -> Result<(), String> + Send + Sync),
    ) -> Result<String, RenewalError> {
        let mut script = self.0.lock().unwrap();
        script.asked += 1;
        script.answers.pop_front().expect("an answer for each order")
    }
}

fn keeper(folder: &Path, script: &Script, names: &[&str]) -> CertificateKeeper {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let place = ("https://ca.example/".to_owned(), folder.join("acme/certificate.pem"));
    CertificateKeeper::open(Box::new(script.clone()), names, place).unwrap()
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 86_400)
}

fn late() -> RenewalError {
    RenewalError::Late
}

#[test]
fn a_certificate_is_due_after_two_thirds_of_its_time_whatever_is_looked_at_when() {
    let folder = tempfile::tempdir().unwrap();
    let new = keeper(folder.path(), &Script::default(), &["a.example"]);
    assert_eq!(new.0.due(NOW), NOW, "there is none");
    // 90 days.
    keep(&new.0.file, &certificate(4, 1)).unwrap();
    let kept = keeper(folder.path(), &Script::default(), &["a.example"]);
    for now in [NOW.minus(days(30)), NOW.plus(days(1)), NOW.plus(days(59)), NOW.plus(days(300))] {
        assert_eq!(kept.0.due(now), NOW.plus(days(60)));
    }
    let more = keeper(folder.path(), &Script::default(), &["a.example", "b.example"]);
    assert_eq!(more.0.due(NOW), NOW, "it has not all names");
    std::fs::remove_file(&kept.0.file).unwrap();
    assert_eq!(kept.0.due(NOW), NOW, "the operator took the file away");
    keep(&new.0.file, "half of a").unwrap();
    let damaged = keeper(folder.path(), &Script::default(), &["a.example"]);
    assert_eq!((damaged.keys().current().is_none(), damaged.0.due(NOW)), (true, NOW));
}

#[tokio::test]
async fn what_is_got_is_shown_and_kept_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::of([Ok(certificate(4, 1))]);
    let keeper = keeper(folder.path(), &script, &["a.example"]);
    keeper.0.renew(&ManualClock::at(NOW)).await.unwrap();
    assert!(keeper.keys().current().is_some());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&keeper.0.file), 0o600);
    assert_eq!(mode(keeper.0.file.parent().unwrap()), 0o700);
    let files = std::fs::read_dir(keeper.0.file.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "nothing is left beside it");
    assert!(self::keeper(folder.path(), &script, &["a.example"]).keys().current().is_some());
}

#[tokio::test]
async fn what_is_of_no_use_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let other_name = {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["b.example".to_owned()]).unwrap();
        key.serialize_pem() + &params.self_signed(&key).unwrap().pem()
    };
    let other_key = {
        let (one, other) = (certificate(4, 1), certificate(4, 1));
        let (key, _) = one.split_once("-----BEGIN CERTIFICATE").unwrap();
        key.to_owned() + other.split_once("-----END PRIVATE KEY-----\n").unwrap().1
    };
    let expired = certificate(1, 1);
    for bad in ["junk".to_owned(), other_name, other_key, expired] {
        let script = Script::of([Ok(bad)]);
        let keeper = keeper(folder.path(), &script, &["a.example"]);
        keep(&keeper.0.file, &certificate(4, 1)).unwrap();
        let keeper = self::keeper(folder.path(), &script, &["a.example"]);
        let before = std::fs::read(&keeper.0.file).unwrap();
        let shown = keeper.keys().current().unwrap();
        let renewed = keeper.0.renew(&ManualClock::at(NOW.plus(days(1)))).await;
        assert!(matches!(renewed, Err(RenewalError::Useless(_))), "{renewed:?}");
        assert!(Arc::ptr_eq(&shown, &keeper.keys().current().unwrap()));
        assert_eq!(std::fs::read(&keeper.0.file).unwrap(), before);
    }
}

#[tokio::test]
async fn nothing_is_asked_for_that_could_not_be_kept_and_what_was_got_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::of([Ok(certificate(4, 1))]);
    // A file where the folder is to be.
    std::fs::write(folder.path().join("acme"), "in the way").unwrap();
    let keeper = keeper(folder.path(), &script, &["a.example"]);
    let clock = ManualClock::at(NOW);
    let refused = keeper.0.renew(&clock).await;
    assert!(matches!(refused, Err(RenewalError::Here(_))), "{refused:?}");
    assert_eq!(script.asked(), 0);
    // What cannot be written after all is shown, and not asked for again.
    let pem = keeper.0.order(NOW).await.unwrap();
    *keeper.0.unwritten.lock().unwrap() = Some(pem.clone());
    assert!(keeper.0.renew(&clock).await.is_err());
    std::fs::remove_file(folder.path().join("acme")).unwrap();
    keeper.0.renew(&clock).await.unwrap();
    assert_eq!(script.asked(), 1);
    assert_eq!(std::fs::read_to_string(&keeper.0.file).unwrap(), pem);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_seldomer_each_time_and_when_the_operator_asks() {
    let folder = tempfile::tempdir().unwrap();
    let answers = [late(), late(), late(), late(), late()].map(Err);
    let script = Script::of(answers.into_iter().chain([Ok(certificate(4, 1))]));
    let keeper = keeper(folder.path(), &script, &["a.example"]);
    let (keys, cancel) = (keeper.keys(), CancellationToken::new());
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW));
    let running = tokio::spawn(keeper.clone().run(clock, cancel.clone()));
    // What it waits for off its thread is done in real time.
    let settled = async |asked: u32| {
        for _ in 0..10_000 {
            if script.asked() == asked && keys.failures() == asked {
                return;
            }
            tokio::task::yield_now().await;
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("asked {} times, not {asked}", script.asked());
    };
    let began = Instant::now();
    for asked in 1..=4 {
        settled(asked).await;
        let pause = PAUSES[usize::try_from(asked - 1).unwrap()];
        tokio::time::sleep(pause + Duration::from_millis(1)).await;
    }
    settled(5).await;
    assert!(began.elapsed() >= PAUSES.iter().sum::<Duration>());
    // Six hours from now; the operator does not wait so long.
    keeper.ask_again();
    tokio::time::sleep(LEAST_PAUSE + Duration::from_secs(1)).await;
    for _ in 0..10_000 {
        if keys.current().is_some() && keys.failures() == 0 {
            break;
        }
        tokio::task::yield_now().await;
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((script.asked(), keys.failures()), (6, 0));
    cancel.cancel();
    running.await.unwrap();
}

/// A clock that is ahead by more than two thirds of each certificate's time.
#[tokio::test(start_paused = true)]
async fn a_wrong_clock_uses_up_no_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::of([Ok(certificate(4, 1)), Ok(certificate(4, 1))]);
    let keeper = keeper(folder.path(), &script, &["a.example"]);
    let cancel = CancellationToken::new();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(NOW.plus(days(80))));
    let running = tokio::spawn(keeper.clone().run(clock, cancel.clone()));
    for asked in [1, 2] {
        let began = Instant::now();
        while script.asked() < asked || !keeper.0.file.exists() {
            tokio::time::sleep(Duration::from_secs(60)).await;
            // What it waits for off its thread is done in real time.
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(asked == 1 || began.elapsed() + Duration::from_secs(600) >= LONGEST_PAUSE);
        std::thread::sleep(Duration::from_millis(100));
    }
    cancel.cancel();
    running.await.unwrap();
}

#[test]
fn pauses_grow_to_the_longest_and_an_authority_that_was_asked_too_often_has_it_at_once() {
    let pauses: Vec<u64> = (0..7).map(|n| pause_after(n, &late()).as_secs()).collect();
    assert_eq!(pauses, [60, 300, 1200, 3600, 21_600, 21_600, 21_600]);
    let limited = RenewalError::Order(AcmeError::refused("rateLimited"));
    assert_eq!((pause_after(0, &limited).as_secs(), limited.is_rate_limited()), (21_600, true));
}

#[test]
fn each_authority_has_files_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.path = folder.path().to_owned();
    config.server.acme_names = vec!["a.example".to_owned()];
    let file = |config: &Config| CertificateKeeper::new(config).unwrap().unwrap().0.file.clone();
    let one = file(&config);
    config.server.acme_directory =
        Some("https://acme-staging-v02.example/directory".parse().unwrap());
    assert_ne!(one, file(&config));
    config.server.acme_names.clear();
    assert!(CertificateKeeper::new(&config).unwrap().is_none());
}
