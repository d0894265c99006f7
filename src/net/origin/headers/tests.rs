use super::*;
use crate::origin::PublicName;
use crate::testing::headers as map;

const OURS: OwnCookie = OwnCookie("tidegate-session");

fn list(headers: &HeaderMap) -> Vec<String> {
    let line = |(name, value): (_, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    let mut all: Vec<String> = headers.iter().map(line).collect();
    all.sort();
    all
}

fn to(pairs: &[(&str, &str)], host: Option<&HeaderValue>, is_trusted: bool) -> HeaderMap {
    let peer = "192.0.2.1".parse().unwrap();
    let name = &PublicName::new("https", "gw.example", false).unwrap();
    let forwarded = ForwardedFor { peer, is_trusted, name };
    to_origin(&map(pairs), host, OURS, Some(&forwarded), &Via::new("gw"))
}

fn sent(pairs: &[(&str, &str)], is_trusted: bool) -> Vec<String> {
    list(&to(pairs, None, is_trusted))
}

const ADDED: [&str; 5] = [
    "forwarded: for=192.0.2.1;host=gw.example;proto=https",
    "via: 1.1 tidegate-gw",
    "x-forwarded-for: 192.0.2.1",
    "x-forwarded-host: gw.example",
    "x-forwarded-proto: https",
];

#[test]
fn what_is_for_one_connection_is_not_passed_on() {
    let hop = [
        ("connection", "close, x-one"),
        ("connection", "X-Two"),
        ("x-one", "1"),
        ("x-two", "2"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "keep-alive"),
        ("proxy-authorization", "Basic x"),
        ("te", "trailers"),
        ("trailer", "x-three"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
        ("http2-settings", "AAA"),
        ("host", "gw.example"),
        ("expect", "100-continue"),
    ];
    assert_eq!(sent(&hop, false), ADDED);
    let kept = [("accept", "text/html"), ("range", "bytes=0-1"), ("content-length", "3")];
    let sent = sent(&kept, false);
    for (name, value) in kept {
        assert!(sent.contains(&format!("{name}: {value}")), "{sent:?}");
    }
    let told = |pairs: &[(&str, &str)]| list(&to_client(map(pairs), OURS, &Via::new("gw")));
    let both = told(&[("transfer-encoding", "chunked"), ("content-length", "3")]);
    assert_eq!(both, ["via: 1.1 tidegate-gw"]);
    let etag = ("etag", "\"a\"");
    let answered = told(&[("connection", "x-one"), ("x-one", "1"), ("alt-svc", "h3"), etag]);
    assert_eq!(answered, ["etag: \"a\"", "via: 1.1 tidegate-gw"]);
    // Nor does our cookie pass in any direction.
    let all = ["a=1; tidegate-session=x; b=2", "tidegate-session=y", "c=3"];
    let cookies = self::sent(&all.map(|value| ("cookie", value)), false);
    let cookies: Vec<_> = cookies.iter().filter(|line| line.starts_with("cookie")).collect();
    assert_eq!(cookies, ["cookie: a=1; b=2; c=3"]);
    let all = ["a=1; Path=/", "tidegate-session=z; Path=/", "b=2", "=tidegate-session=x"];
    let set = map(&all.map(|value| ("set-cookie", value)));
    let passed = to_client(set, OURS, &Via::new("gw"));
    let passed: Vec<_> = passed.get_all(header::SET_COOKIE).iter().collect();
    assert_eq!(passed, ["a=1; Path=/", "b=2"]);
}

#[test]
fn chunked_is_the_only_coding_that_is_known() {
    let coded = |values: &[&str]| {
        let pairs: Vec<_> = values.iter().map(|value| ("transfer-encoding", *value)).collect();
        has_other_coding(&map(&pairs))
    };
    assert!(!coded(&[]) && !coded(&["chunked"]) && !coded(&["Chunked"]));
    let both: [&[_]; 2] = [&["gzip", "chunked"], &["chunked", "chunked"]];
    for other in both.into_iter().chain([&["gzip, chunked"][..], &["identity"]]) {
        assert!(coded(other), "{other:?}");
    }
}

#[test]
fn nobody_else_says_for_whom_a_request_is() {
    let spoofed = [
        ("x-forwarded-for", "198.51.100.7"),
        ("forwarded", "for=198.51.100.7"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-port", "1"),
        ("x-real-ip", "198.51.100.7"),
        ("x_forwarded_for", "198.51.100.7"),
        ("x_real-ip", "198.51.100.7"),
        ("proxy", "http://evil.example/"),
    ];
    assert_eq!(sent(&spoofed, false), ADDED);
    // A trusted proxy's addresses come first; its name may be the client's and is dropped.
    let told = [
        "forwarded: for=198.51.100.7, for=192.0.2.1;host=gw.example;proto=https",
        "via: 1.1 tidegate-gw",
        "x-forwarded-for: 198.51.100.7, 192.0.2.1",
        "x-forwarded-host: gw.example",
        "x-forwarded-proto: https",
        "x-real-ip: 198.51.100.7",
    ];
    assert_eq!(sent(&spoofed, true), told);
    // Of what a trusted proxy says, names are left out.
    let forwarded = |value: &str| {
        let all = sent(&[("forwarded", value)], true);
        let own = "for=192.0.2.1;host=gw.example;proto=https";
        let line = all.iter().find_map(|line| line.strip_prefix("forwarded: ")).unwrap();
        line.strip_suffix(own).unwrap().to_owned()
    };
    for (value, kept) in [
        ("host=evil.example;proto=http", ""),
        ("For=198.51.100.7;Host=evil.example;by=_a, for=_b", "For=198.51.100.7;by=_a, for=_b, "),
        ("for=\"[2001:db8::1]:80\";proto=https", "for=\"[2001:db8::1]:80\", "),
        ("for=\"a;host=evil.example, b\"", ""),
        ("for=\"a, for=198.51.100.7", ""),
        ("for=\"a\\\";host=evil.example\", for=_c", ""),
        ("", ""),
    ] {
        assert_eq!(forwarded(value), kept, "{value}");
    }
    // The origin is told its own host.
    let host = HeaderValue::from_static("blog.example:81");
    for asked in [&[("host", "gw.example")][..], &[]] {
        let sent = to(asked, Some(&host), false);
        assert_eq!(sent.get_all(header::HOST).iter().collect::<Vec<_>>(), [&host]);
    }
}
