use super::*;

const FORM: &str = "notifyProcedure=&port=8080&path=%2Fnotify%3Fa%3Db&protocol=http-post\
     &domain=reader.example&url2=http%3A%2F%2Fg%2Ftwo&url1=http%3A%2F%2Fg%2Fone";

#[test]
fn a_registration_is_read() {
    let read = read_registration(FORM.as_bytes()).unwrap();
    let topics: Vec<&str> = read.iter().map(|asked| asked.topic.as_str()).collect();
    assert_eq!(topics, ["http://g/one", "http://g/two"]);
    assert_eq!(read[1].callback.as_str(), "http://reader.example:8080/notify?a=b");
    let form = FORM.replace("http-post", "https-post").replace("8080", "443");
    let read = read_registration(form.replace("%2Fnotify", "notify").as_bytes()).unwrap();
    assert_eq!(read[0].callback.as_str(), "https://reader.example/notify?a=b");
    let twice = format!("port=1&domain=other.example&{FORM}");
    assert_eq!(read_registration(twice.as_bytes()), read_registration(FORM.as_bytes()));
    let six = FORM.replace("reader.example", "[::1]");
    assert_eq!(read_registration(six.as_bytes()).unwrap()[0].callback.port(), Some(8080));
}

#[test]
fn mistakes_are_said() {
    let many: String = (1..=11).map(|n| format!("&url{n}=x")).collect();
    let of_length = |length| FORM.replace("http%3A%2F%2Fg%2Fone", &"x".repeat(length));
    for (form, said) in [
        (String::new(), "protocol is missing"),
        (FORM.replace("domain=reader.example", ""), "domain is missing"),
        (FORM.replace("port=8080", "port="), "port is missing"),
        (FORM.replace("port=8080", "port=0"), "no address"),
        (FORM.replace("port=8080", "port=80%40evil.example"), "no address"),
        (FORM.replace("reader.example", "u:p%40reader.example"), "no address"),
        (FORM.replace("reader.example", "evil.example%2Fx%3F"), "no address"),
        (FORM.replace("http-post", "xml-rpc"), "not \"xml-rpc\""),
        (FORM.replace("url1", "uri1").replace("url2", "uri2"), "url1 is missing"),
        (format!("{FORM}{many}"), "at most 10 feeds"),
        ("x".repeat(20_000), "the limit is 16384"),
        ("a&".repeat(70), "64 parameters"),
        (of_length(ADDRESS_LIMIT + 1), "of a feed is 2049 bytes long, the limit is 2048"),
    ] {
        let error = read_registration(form.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(said), "{form}: {error}");
    }
    assert!(read_registration(of_length(ADDRESS_LIMIT).as_bytes()).is_ok());
}

#[test]
fn what_is_sent_keeps_the_callbacks_own_query() {
    let callback = Url::parse("http://a.example/n?own=1").unwrap();
    let asked = challenged(&callback, "http://g/one?a&b", "c0ffee");
    let expected = "http://a.example/n?own=1&url=http%3A%2F%2Fg%2Fone%3Fa%26b&challenge=c0ffee";
    assert_eq!(asked.as_str(), expected);
    assert_eq!(changed("http://g/one?a&b"), "url=http%3A%2F%2Fg%2Fone%3Fa%26b");
}
