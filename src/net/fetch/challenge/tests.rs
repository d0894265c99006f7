use super::*;
use crate::testing::headers;

type Pairs = &'static [(&'static str, &'static str)];

const CLOUDFLARE: &str = "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title>\
    <script>(function(){window._cf_chl_opt = {cvId: '3'};})();</script>";
const AKAMAI: &str = "<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n\
    You don't have permission to access \"http&#58;&#47;&#47;a&#46;example\" on this server.<P>\n\
    Reference&#32;&#35;18&#46;2d3a1502&#46;1700000000&#46;1a2b3c\n</BODY></HTML>";

#[test]
fn challenges_are_named_by_their_service_and_plain_refusals_are_none() {
    let cases: &[(u16, Pairs, &str, Option<&str>)] = &[
        (403, &[("cf-mitigated", "challenge"), ("server", "cloudflare")], "", Some("Cloudflare")),
        (503, &[("server", "cloudflare")], CLOUDFLARE, Some("Cloudflare")),
        (403, &[("server", "cloudflare")], "error code: 1020", Some("Cloudflare")),
        (403, &[("server", "AkamaiGHost")], AKAMAI, Some("Akamai")),
        (403, &[], "see https://errors.edgesuite.net/18.2d3a1502", Some("Akamai")),
        (403, &[("x-datadome", "protected")], "", Some("DataDome")),
        (403, &[("server", "DataDome")], "", Some("DataDome")),
        (202, &[("x-amzn-waf-action", "challenge")], "", Some("AWS WAF")),
        (405, &[("x-amzn-waf-action", "captcha")], "<html>", Some("AWS WAF")),
        (403, &[("server", "CloudFront")], "<H1>403</H1>Request blocked.", Some("AWS WAF")),
        (429, &[("x-vercel-mitigated", "challenge")], "", Some("Vercel")),
        (403, &[("x-sucuri-block", "1")], "", Some("Sucuri")),
        (429, &[("x-kpsdk-ct", "x")], "", Some("Kasada")),
        (403, &[("server", "cloudflare")], "<html>members only</html>", None),
        (404, &[("server", "cloudflare")], CLOUDFLARE, None),
        (401, &[("server", "nginx")], "<html>Reference #5: request blocked</html>", None),
        (500, &[("x-datadome", "protected")], "", None),
        (403, &[("cf-mitigated", "none")], "", None),
        (503, &[], "busy", None),
    ];
    for (code, pairs, body, service) in cases {
        let found = recognize(*code, &headers(pairs), body.as_bytes());
        assert_eq!(found, *service, "{code} {pairs:?} {body}");
    }
    // A page in the place of a document is told from a feed that speaks of one.
    let html = headers(&[("content-type", "text/html; charset=utf-8")]);
    assert_eq!(in_page(&html, CLOUDFLARE.as_bytes()), Some("Cloudflare"));
    let feed = format!("<?xml version=\"1.0\"?><rss><channel><title>{CLOUDFLARE}");
    assert_eq!(in_page(&html, feed.as_bytes()), None, "served with the wrong type");
    let xml = headers(&[("content-type", "application/rss+xml")]);
    assert_eq!(in_page(&xml, CLOUDFLARE.as_bytes()), None);
    assert_eq!(in_page(&html, b"<html><title>News</title>"), None);
}
