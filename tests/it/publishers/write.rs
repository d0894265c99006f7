//! The publisher's documents as bytes: Atom 1.0 and RSS 2.0, with the noise that a program adds.

use crate::publishers::plan::{Glitch, Window};
use crate::publishers::publisher::{Post, Publisher, mix};
use crate::support::first_part;
use tidegate_core::model::Time;

/// Where the number of a post stands in its entry: in a comment, which nobody judges.
pub fn marker(number: u32) -> String {
    format!("<!--post {number}-->")
}

pub fn number_of(xml: &str) -> Option<u32> {
    xml.split_once("<!--post ")?.1.split_once("-->")?.0.parse().ok()
}

pub fn document(publisher: &Publisher, shown: &[u32]) -> String {
    let seed = if publisher.site.noisy { publisher.build } else { 0 };
    let entries = shown.iter().map(|number| entry(publisher, publisher.get(*number), seed));
    let entries = entries.collect::<Vec<_>>().join("\n");
    let (now, base) = (Time::from_unix(publisher.now), publisher.base());
    let generator = format!("<generator>Press 1.{}</generator>", seed % 3);
    let complete = match publisher.site.window {
        Window::Complete => "<fh:complete xmlns:fh=\"http://purl.org/syndication/history/1.0\"/>",
        _ => "",
    };
    let declared = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";
    let title = "<title>News of the publisher</title>";
    match publisher.site.atom {
        true => format!(
            "{declared}\n<feed xmlns=\"http://www.w3.org/2005/Atom\">{title}<id>urn:x-feed:1</id>\
             <link href=\"{base}/\"/>{generator}<updated>{now}</updated>{complete}\n{entries}\n</feed>"
        ),
        false => format!(
            "{declared}\n<rss version=\"2.0\"><channel>{title}<link>{base}/</link>\
             <description>d</description>{generator}<lastBuildDate>{}</lastBuildDate>{complete}\n\
             {entries}\n</channel></rss>",
            now.rfc822()
        ),
    }
}

fn entry(publisher: &Publisher, post: &Post, seed: u64) -> String {
    let site = &publisher.site;
    let luck = |salt: u64| mix(seed, mix(u64::from(post.number), salt));
    let title = publisher.title(post);
    let mut link = publisher.link(post);
    if seed > 0 && luck(1) % 3 == 0 {
        link += &format!("?utm_source=feed&amp;utm_campaign={}", luck(2) % 100);
    }
    let date = publisher.date(post).map(Time::from_unix);
    let picture =
        format!("{}/pictures/{}.jpg?width={}", publisher.base(), post.number, luck(3) % 9);
    let attributes = match luck(4) % 2 {
        0 => format!("src=\"{picture}\" alt=\"a picture\""),
        _ => format!("alt=\"a picture\" src=\"{picture}\""),
    };
    let text = format!(
        "&lt;p&gt;What came of case {n}, told at such length that it is a text of its own and nobody \
         takes it for that of another, with {words:x} in it.{gap}&lt;/p&gt;&lt;p&gt;{edition}&lt;/p&gt;\
         &lt;img {attributes}&gt;",
        n = post.number,
        words = mix(u64::from(post.number), 5),
        gap = if luck(5) % 2 == 0 { "" } else { " \n" },
        edition = edition(post),
    );
    let counter = format!(
        "<slash:comments xmlns:slash=\"http://purl.org/rss/1.0/modules/slash/\">{}</slash:comments>",
        luck(6) % 50
    );
    let counter = if seed > 0 { counter } else { String::new() };
    let (marker, id) = (marker(post.number), publisher.id(post));
    let is_linked = !site.unlinked;
    if site.atom {
        let id = id.map_or_else(String::new, |id| format!("<id>{id}</id>"));
        let link = match luck(7) % 2 {
            _ if !is_linked => String::new(),
            0 => format!("<link rel=\"alternate\" href=\"{link}\"/>"),
            _ => format!("<link href=\"{link}\"  rel='alternate' />"),
        };
        // Where every build stamps its entries, the stamp says nothing.
        let stamp = Time::from_unix(if seed > 0 { publisher.now } else { post.updated });
        let dates =
            date.map(|date| format!("<published>{date}</published><updated>{stamp}</updated>"));
        let dates = dates.unwrap_or_default();
        return format!(
            "<entry>{marker}{id}<title>{title}</title>{link}{dates}\
             <content type=\"html\">{text}</content>{counter}</entry>"
        );
    }
    let link = if is_linked { format!("<link>{link}</link>") } else { String::new() };
    let guid = |id: String| format!("<guid isPermaLink=\"{}\">{id}</guid>", id.starts_with("http"));
    let id = id.map_or_else(String::new, guid);
    let date = date.map(|date| format!("<pubDate>{}</pubDate>", date.rfc822())).unwrap_or_default();
    format!(
        "<item>{marker}<title>{title}</title>{link}{id}{date}\
         <description>{text}</description>{counter}</item>"
    )
}

fn edition(post: &Post) -> &'static str {
    const SAID: [&str; 7] = [
        "Nobody was hurt.",
        "Correction: the mayor was not there.",
        "The council has answered since.",
        "Two readers wrote that they saw it too.",
        "The price was wrong in the first report.",
        "A picture was added, and the name of the street.",
        "It is settled now.",
    ];
    SAID[post.text as usize % SAID.len()]
}

/// What comes instead of a document, and the posts that it shows in whole.
pub fn glitch(publisher: &Publisher, glitch: &Glitch) -> String {
    let shown = publisher.shown();
    let whole = document(publisher, &shown);
    match glitch {
        Glitch::Empty => document(publisher, &[]),
        Glitch::NoBytes => String::new(),
        Glitch::Html => "<!DOCTYPE html><html><head><title>Sign in</title></head>\
                         <body><form action=\"/login\">Sign in</form></body></html>"
            .to_owned(),
        Glitch::Cut(part) => first_part(&whole, *part).to_owned(),
        Glitch::IllFormed(at) => {
            let Some(number) = publisher.pick(*at) else { return whole };
            let Some(at) = whole.find(&marker(number)) else { return whole };
            let (before, behind) = whole.split_at(at);
            format!("{before}{}", behind.replacen("</title>", "</tit", 1))
        }
        Glitch::Shrunken(top) => {
            let keep = shown.len() / 3;
            let kept: Vec<u32> = match top {
                true => shown.iter().copied().take(keep).collect(),
                false => shown.iter().copied().skip(1).step_by(3).take(keep).collect(),
            };
            document(publisher, &kept)
        }
    }
}
