use super::*;
use tidegate_judge::record::local;

fn entry(inner: &str) -> Markup {
    let names = "xmlns='http://www.w3.org/2005/Atom' xmlns:m='urn:m'";
    first_entry(&format!("<feed {names}><entry>{inner}</entry></feed>"))
}

fn markup(title: &str, text: &str) -> Markup {
    entry(&format!(
        "<id>urn:x</id><title>{title}</title><author><name>A. Uthor</name></author>\
         <link href='https://example.org/p'/><content type='html'>{text}</content>"
    ))
}

pub(super) fn outline(attributes: &str) -> Markup {
    let list = format!("<opml version='2.0'><body><outline {attributes}/></body></opml>");
    first_entry(&parse::opml::transcoded(&list).unwrap().unwrap())
}

fn content(id: &str, content: &str) -> Markup {
    entry(&format!("<id>{id}</id><title>T</title>{content}"))
}

pub(super) fn contested(of: &str) -> Item {
    let mut item = item(of, -10, ItemStatus::Current);
    let html = |title: &str, text: &str| markup(title, &format!("&lt;p&gt;{text}&lt;/p&gt;"));
    item.shared.winner =
        version(of, "gate", (3, -600), html("The harbour opens", "At nine in May"));
    let (title, text) =
        ("The harbour &lt;b&gt;closes&lt;/b&gt;", "At nine in June &lt;i&gt;x&lt;/i&gt;");
    let mut gone = version(of, "<u>third</u>", (2, -600), markup("Gone", ""));
    gone.deleted = true;
    item.shared.conflicts = vec![version(of, "other.example", (2, -600), html(title, text)), gone];
    item
}

/// A site whose feed `news` has such items in conflict.
pub(super) fn site(items: &[&str]) -> Site {
    let site = Site::new();
    site.store.edit("news", |feed| {
        for of in items {
            feed.items.retain(|item| item.shared.winner.id != id(of));
            feed.items.push(contested(of));
        }
    });
    site
}

#[tokio::test]
async fn both_versions_stand_side_by_side_with_what_can_be_done() {
    let site = site(&["a"]);
    let answer = site.get("/feeds/news/conflicts").await;
    let policy = header(&answer, "content-security-policy").to_owned();
    assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self'"));
    assert_eq!(header(&answer, "cache-control"), "no-store");
    assert_eq!(header(&answer, "referrer-policy"), "same-origin");
    let page = text(answer).await;
    insta::assert_snapshot!("contested_page", page);
    // What stands in for a deleted item is no text of it: nothing is compared with that.
    page.assert_lacks(&["<ins>Gone", "<script", "<u>", "<i>x", "style=", "javascript:", TOKEN]);
    // Other pages lead there.
    for (path, words) in [
        ("/", "1 in conflict"),
        ("/feeds/news/about", "1 item is in conflict"),
        ("/feeds/news/items/a", "2 versions in conflict with this item"),
    ] {
        site.text(path).await.assert_shows(&[words, "href=\"/feeds/news/conflicts\""]);
    }
    assert_eq!(site.told("/feeds/news").await["conflicts"], 1);
    // The same is told as data.
    let site = self::site(&["a", "b"]);
    let accept = [("accept", "application/json")];
    let said = json(site.get_with("/feeds/news/conflicts", &accept).await).await;
    assert_eq!(said, json(site.call("GET", "/feeds/news/conflicts", "").await).await);
    insta::assert_snapshot!("contested", said);
    // Many are shown in turn.
    let names: Vec<String> = (0..25).map(|n| format!("item-{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let site = self::site(&names);
    site.store.edit("news", |feed| {
        let item = feed.items.last_mut().unwrap();
        let loser = item.shared.conflicts[0].clone();
        item.shared.conflicts = vec![loser; Conflicting::LIMIT];
    });
    let accept = [("accept", "application/json")];
    let first = json(site.get_with("/feeds/news/conflicts", &accept).await).await;
    assert_eq!(first["count"], 25);
    assert_eq!(first["conflicts"].as_array().unwrap().len(), 20);
    let next = first["next"].as_str().unwrap().strip_prefix("https://feeds.example.org").unwrap();
    site.text("/feeds/news/conflicts").await.assert_shows(&[&format!("href=\"{next}\"")]);
    let rest = json(site.get_with(next, &accept).await).await;
    let rest = rest["conflicts"].as_array().unwrap();
    assert_eq!(rest.len(), 5);
    assert_eq!(rest[0]["sync_id"], "item-20");
    assert_eq!(rest[4]["count"], Conflicting::LIMIT);
    assert_eq!(rest[4]["conflicts"].as_array().unwrap().len(), 12);
    site.text(next).await.assert_shows(&["what you decide is about all of them"]);
}

pub(super) async fn stored(site: &Site, of: &str) -> Shared<Markup> {
    site.store.item(&name("news"), &id(of)).await.unwrap().unwrap().shared
}

pub(super) fn edit_last(site: &Site, edit: impl FnOnce(&mut Item)) {
    site.store.edit("news", |feed| edit(feed.items.last_mut().unwrap()));
}

async fn post(site: &Site, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    site.ask(request("POST", "/feeds/news/conflicts", headers, body)).await
}

#[tokio::test]
async fn a_form_resolves_and_leads_back() {
    let site = site(&["a"]);
    let tag = local::tag(&stored(&site, "a").await);
    for (body, title, is_deleted) in [
        ("keep=winner", "The harbour opens", false),
        ("keep=1", "Gone", true),
        ("keep=new&title=Agreed&content=%3Cp%3Ex%3C%2Fp%3E&html=yes", "Agreed", false),
        ("keep=new&title=Agreed&content=one%0D%0Atwo", "Agreed", false),
    ] {
        site.store.restore("news");
        let body = format!("token={TOKEN}&item=a&etag={tag}&{body}");
        let answer = post(&site, &[FORM, OURS], &body).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(header(&answer, "location"), "/feeds/news/conflicts");
        let cookie = header(&answer, "set-cookie").split(';').next().unwrap().to_owned();
        let page = site.get_with("/feeds/news/conflicts", &[("cookie", &cookie)]).await;
        text(page).await.assert_shows(&["Resolved. The item a has"]);
        let shared = stored(&site, "a").await;
        assert_eq!((shared.winner.deleted, shared.conflicts.len()), (is_deleted, 0), "{body}");
        if !is_deleted {
            assert_eq!(shared.winner.data.card.title, title);
            shared.winner.data.xml.assert_shows(&["https://example.org/p", "A. Uthor"]);
        }
    }
    text(site.get("/feeds/news/conflicts?after=%00").await).await.assert_lacks(&["<script"]);
    // One that says no decision does nothing.
    site.store.restore("news");
    let (tag, before) = (local::tag(&stored(&site, "a").await), site.writes());
    let good = format!("token={TOKEN}&item=a&etag={tag}&keep=winner");
    let long = format!("{good}&content={}", "x".repeat(1024 * 1024));
    for (kind, body, status) in [
        (("x", ""), good.as_str(), 415),
        (FORM, &long, 413),
        (FORM, &good.replace("item=a", "item=%00"), 404),
        (FORM, &good.replace("item=a", "item=nothing"), 404),
        (FORM, &good.replace("winner", "what"), 400),
        (FORM, &good.replace("winner", "new"), 422),
    ] {
        let answer = post(&site, &[kind, OURS], body).await;
        assert_eq!(answer.status().as_u16(), status, "{}", body.len());
        assert!(header(&answer, "content-security-policy").contains("frame-ancestors 'none'"));
        let page = text(answer).await;
        page.assert_shows(&["Nothing was changed"]);
        page.assert_lacks(&[TOKEN]);
    }
    assert_eq!(site.writes(), before);
    let other = request("POST", "/feeds/nowhere/conflicts", &[FORM, OURS], &good);
    problem(site.ask(other).await, 404).await;
}

/// What is not edited stays: a form has a title and a text, and an item has more.
#[tokio::test]
async fn a_new_one_keeps_all_that_was_not_edited() {
    let site = site(&["a"]);
    let data = entry(
        "<id>urn:x</id><title type='html'>The &amp;lt;b&amp;gt;old</title><category term='c'/>\
         <m:x>kept</m:x><link rel='enclosure' href='https://example.org/e'/><contributor><name>C</name>\
         </contributor><content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>\
         <p>Old</p></div></content>",
    );
    edit_last(&site, |item| item.shared.winner.data = data);
    let page = site.text("/feeds/news/conflicts").await;
    let shown = page.split_once("rows=\"8\">").unwrap().1.split("</textarea>").next().unwrap();
    let plain = shown.replace("&lt;", "<").replace("&gt;", ">");
    let shown: String = url::form_urlencoded::byte_serialize(plain.as_bytes()).collect();
    for (body, wanted) in [
        (format!("title=New&html=yes&content={shown}"), "<p>Old</p>"),
        ("title=New&content=new".to_owned(), ">new<"),
    ] {
        site.store.restore("news");
        let tag = local::tag(&stored(&site, "a").await);
        let body = format!("token={TOKEN}&item=a&etag={tag}&keep=new&{body}");
        assert_eq!(post(&site, &[FORM, OURS], &body).await.status(), StatusCode::SEE_OTHER);
        let version = stored(&site, "a").await.winner.data;
        assert_eq!(version.card.title, "New");
        let kept = ["term='c'", "kept</m:x>", "rel='enclosure'", "<name>C</name>", wanted];
        version.xml.assert_shows(&kept);
    }
    // An outline is chosen and not written over: a form has no address of one, so that nobody writes a new one.
    let outline =
        |text: &str| outline(&format!("text='{text}' type='rss' xmlUrl='https://a.example/feed'"));
    let site = self::site(&["a"]);
    edit_last(&site, |item| {
        item.shared.winner.data = outline("One");
        item.shared.conflicts = vec![version("a", "other.example", (2, -600), outline("Two"))];
    });
    let page = site.text("/feeds/news/conflicts").await;
    page.assert_shows(&["Take number 1"]);
    page.assert_lacks(&["Write a new one"]);
    let tag = local::tag(&stored(&site, "a").await);
    for (keep, status, title) in [("new", 400, "One"), ("0", 303, "Two")] {
        let body = format!("token={TOKEN}&item=a&etag={tag}&keep={keep}&title=Three&content=");
        assert_eq!(post(&site, &[FORM, OURS], &body).await.status().as_u16(), status, "{keep}");
        let data = stored(&site, "a").await.winner.data;
        assert_eq!(data.card.title, title);
        data.xml.assert_shows(&["https://a.example/feed"]);
    }
}

#[tokio::test]
async fn texts_are_shown_as_they_are_and_a_new_one_begins_with_what_lives() {
    let site = Site::new();
    edit_last(&site, |item| {
        let data = content("urn:1", "<content>Good morning, all &amp;lt;b&amp;gt;!</content>");
        item.shared.winner.data = data;
        item.shared.winner.data.card.title = String::new();
    });
    let shown = "items/a\">Good morning, all &amp;lt;b&amp;gt;!</a>";
    site.text("/feeds/news/items").await.assert_shows(&[shown]);
    // Plain text is shown as it is.
    let site = self::site(&["a"]);
    let winner = content("urn:1", "<content>if a&lt;b then &amp;amp; stop\n\nelse go</content>");
    edit_last(&site, |item| item.shared.winner.data = winner);
    let page = site.text("/feeds/news/conflicts").await;
    let written = "rows=\"8\">if a&lt;b then &amp;amp; stop\n\nelse go</textarea>";
    page.assert_shows(&["if a&lt;b then &amp;amp; stop\n\nelse go</p>", written]);
    page.assert_lacks(&["value=\"yes\" checked"]);
    // The ids differ as well, and nobody decides about them.
    let said = site.told("/feeds/news/conflicts").await.to_string();
    said.assert_shows(&["\"name\":\"Text\""]);
    said.assert_lacks(&["\"name\":\"Id\""]);
    // Where the winner is a deletion, a new one begins with what lives.
    let site = self::site(&["a"]);
    edit_last(&site, |item| {
        item.standing = ItemStatus::Deleted { since: at(-10) };
        (item.shared.winner.deleted, item.shared.winner.data) = (true, markup("Deleted", "x"));
        item.shared.conflicts.rotate_left(1);
    });
    let page = site.text("/feeds/news/conflicts").await;
    page.assert_shows(&["name=\"title\" value=\"The harbour ", "value=\"yes\" checked"]);
    let written = page.split_once("<textarea").unwrap().1.split("</textarea>").next().unwrap();
    written.assert_shows(&["At nine in June"]);
    // Conflicts are counted without reading them.
    let site = Site::new();
    site.store.edit("radio", |feed| feed.items.push(contested("radio")));
    site.metrics_with(&["tidegate_feeds_in_conflict 1", "tidegate_items_in_conflict 1"]).await;
    let told = site.told("/feeds?show=conflicts").await;
    assert_eq!((&told["matches"], &told["feeds"][0]["conflicts"]), (&1.into(), &1.into()));
    assert_eq!(site.store.reads_of("index"), 0);
}
