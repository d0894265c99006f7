use super::*;
use crate::{FAULTS_SHOWN, check};

/// A table `[[origin]]` of five lines; `place` is the fourth.
fn origin(name: &str, place: &str) -> String {
    format!("[[origin]]\nname = {name:?}\nurl = \"https://{name}.example/\"\n{place}\n\n")
}

/// The one fault of a text begins so.
fn assert_fault(text: &str, said: &str) {
    let found = check("f", text).unwrap_err().to_string();
    assert!(found.starts_with(said) && found.lines().count() == 1, "{text}\n{found}");
}

#[test]
fn no_place_is_below_what_the_gateway_answers() {
    for own in OWN_STEPS {
        let text = origin("a", &format!("at = \"/{own}/x/\""));
        assert_fault(&text, &format!("f:4: origin.at: \"/{own}/x/\" is the gateway's own"));
    }
    let long = format!("/{}/", "a".repeat(PATH_LIMIT));
    let text = origin("a", &format!("at = {long:?}"));
    assert_fault(&text, "f:4: origin.at: the path is 1026 bytes long, the limit is 1024");
    for host in [["a"; 128].join("."), format!("{}.example", "a".repeat(64))] {
        let text = origin("a", &format!("host = {host:?}"));
        assert_fault(&text, &format!("f:4: origin.host: {host:?} is no name of a host"));
    }
    // There are only so many tables.
    let origins: String =
        (0..=ORIGIN_LIMIT).map(|n| origin(&format!("n{n}"), &format!("at = \"/n{n}/\""))).collect();
    assert_fault(&origins, "f:5001: origin: there are 1001 of these, the limit is 1000");
    let allowed: String =
        (0..=ALLOW_LIMIT).map(|n| format!("[[allow]]\nurl = \"https://a/{n}\"\n")).collect();
    assert_fault(&allowed, "f:2001: allow: there are 1001 of these, the limit is 1000");
    const { assert!(ORIGIN_LIMIT > FAULTS_SHOWN) };
}
