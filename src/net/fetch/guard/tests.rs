use super::*;
use crate::testing::url;

#[test]
fn every_spelling_of_a_private_address_is_refused() {
    let spellings = "127.0.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 127.1 127.0.0.1. %31%32%37.0.0.1 \
        ①②⑦.0.0.1 [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:10.0.0.1] \
        [64:ff9b::127.0.0.1] [::127.0.0.1] [fe80::1] [fd00::1] 0 0.0.0.0 10.0.0.1:8080 192.168.0.1 \
        169.254.169.254/latest/meta-data user:pass@127.0.0.1 example.org@127.0.0.1";
    for text in spellings.split_ascii_whitespace() {
        let text = &format!("http://{text}");
        let refused = check(&url(text), &AllowPrivate::No);
        assert!(matches!(refused, Err(Refusal::Address { .. })), "{text}: {refused:?}");
    }
    // Only HTTP and HTTPS are fetched.
    for text in ["ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "data:,x"] {
        let refused = check(&url(text), &AllowPrivate::All);
        assert!(matches!(refused, Err(Refusal::Malformed(_))), "{text}: {refused:?}");
    }
    assert!(matches!(read_url("/feed.xml"), Err(Refusal::Malformed(_))));
    let long = format!("http://example.org/{}", "x".repeat(MAX_URL_BYTES));
    assert!(matches!(read_url(&long), Err(Refusal::Malformed(_))));
}

#[test]
fn what_is_allowed_opens_its_hosts_with_their_ports_and_no_more() {
    let (no, all) = (AllowPrivate::No, AllowPrivate::All);
    let list = AllowPrivate::only(["127.0.0.1:8080", "[::1]:80", "Intranet.Example:443"]).unwrap();
    let (named, public) = (Some(Openness::Named), Some(Openness::Public));
    for (allow, expected, addresses) in [
        (&no, public, "http://1.1.1.1/ https://example.org/ http://[2606:4700::1]/"),
        (&all, None, "http://169.254.169.254/ http://224.0.0.1/ http://203.0.113.1/"),
        (&list, named, "http://127.0.0.1:8080/ http://0x7f.1:8080/ http://[::1]/"),
        (&list, named, "https://intranet.example/ https://intranet.example./"),
        (&list, None, "http://127.0.0.1:8081/ http://127.0.0.2:8080/ https://[::1]/"),
        (&list, public, "http://intranet.example/ https://example.org/"),
    ] {
        for text in addresses.split(' ') {
            assert_eq!(check(&url(text), allow).ok(), expected, "{text}");
        }
    }
    let opened = "127.0.0.1:1 10.0.0.1 [fd00::1] 0.0.0.0:80 100.64.0.1";
    for host in opened.split(' ') {
        assert!(check(&url(&format!("http://{host}/")), &all).is_ok(), "{host}");
    }
    // Hosts of the operator's own need no pause.
    for (allow, is_own, addresses) in [
        (&no, false, "http://127.0.0.1/"),
        (&all, true, "http://127.0.0.1/ http://localhost:9/"),
        (&all, false, "http://example.org/ http://1.1.1.1/"),
        (&list, true, "https://intranet.example/"),
        (&list, false, "https://intranet.example:81/"),
    ] {
        for text in addresses.split(' ') {
            assert_eq!(allow.is_own_host(&url(text)), is_own, "{text}");
        }
    }
    // Entries must be host and port.
    let bad = " host host: :80 host:0 host:99999 a/b:80 u@h:80 h:1:80 h:+1 ::1:80";
    for bad in bad.split(' ') {
        assert!(AllowPrivate::only([bad]).is_err(), "{bad:?} was taken");
    }
}

#[test]
fn the_refusal_says_what_to_do_and_hides_credentials() {
    let said = check(&url("http://me:secret@10.0.0.1/"), &AllowPrivate::No).unwrap_err();
    let expected = "10.0.0.1 has a private address; list it in polling.allow_private as host:port \
                    if that is meant";
    assert_eq!(said.to_string(), expected);
    assert_eq!(shown(&url("http://me:secret@example.org/a?b#c")), "http://example.org/a?b");
}

#[test]
fn a_proxy_that_no_configuration_names_is_public_or_allowed() {
    let only = AllowPrivate::only(["proxy.internal:3128", "127.0.0.1:1080"]).unwrap();
    for (address, in_public, in_only) in [
        ("http://1.1.1.1:3128", true, true),
        ("socks5h://[2606:4700::1111]", true, true),
        ("http://127.0.0.1:3128", false, false),
        ("socks5://127.1", false, true),
        ("socks5://0x7f000001:1080", false, true),
        ("http://169.254.169.254", false, false),
        ("http://[::ffff:10.0.0.1]:80", false, false),
        ("http://proxy.internal:3128", false, true),
        ("https://proxy.internal:443", false, false),
        ("http://proxy.example:3128", false, false),
        ("nothing", false, false),
    ] {
        assert_eq!(admits_proxy(address, &AllowPrivate::No), in_public, "{address}");
        assert_eq!(admits_proxy(address, &only), in_only, "{address}");
    }
    assert!(admits_proxy("http://proxy.example:3128", &AllowPrivate::All));
    assert!(!admits_proxy("http://169.254.169.254", &AllowPrivate::All));
}

#[test]
fn addresses_of_the_web_are_told_from_all_others() {
    use NonPublicKind::{LinkLocal, Loopback, Multicast, Private, Reserved};
    for (expected, addresses) in [
        (
            None,
            "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
             169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 \
             198.20.0.0 223.255.255.255 2606:4700::1111 2001:200::1 2a00::1 ::ffff:1.1.1.1 \
             64:ff9b::101:101",
        ),
        (Some(Loopback), "0.0.0.0 127.0.0.1 127.255.0.9 :: ::1 ::ffff:127.0.0.1 64:ff9b::7f00:1"),
        (
            Some(Private),
            "10.0.0.1 100.64.0.1 100.127.255.255 172.16.0.1 172.31.255.255 192.168.1.1 \
             ::ffff:10.1.2.3 fc00::1 fd12:3456::1",
        ),
        (Some(LinkLocal), "169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe fe80::1"),
        (Some(Multicast), "224.0.0.1 239.255.255.255 255.255.255.255 ff02::1"),
        (
            Some(Reserved),
            "0.1.2.3 192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.7 \
             203.0.113.7 240.0.0.1 ::7f00:1 64:ff9b:1::101:101 100::1 2001::1 2001:2::1 2001:10::1 \
             2001:db8::1 2002:7f00:1:: 2002:101:101:: 3fff::1 5f00::1 fec0::1",
        ),
    ] {
        for text in addresses.split(' ') {
            assert_eq!(kind(text.parse().unwrap()), expected, "{text}");
        }
    }
}
