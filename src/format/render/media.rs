//! The media type of a file whose publisher names none, by the end of its address.

/// What a file may be of which nothing is known (RFC 2046 section 4.5.1).
pub const ANY: &str = "application/octet-stream";
/// Media types by the name's end.
const KNOWN: &[(&str, &str)] = &[
    ("mp3", "audio/mpeg"),
    ("m4a", "audio/mp4"),
    ("m4b", "audio/mp4"),
    ("aac", "audio/aac"),
    ("ogg", "audio/ogg"),
    ("oga", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("flac", "audio/flac"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("m4v", "video/mp4"),
    ("mov", "video/quicktime"),
    ("webm", "video/webm"),
    ("ogv", "video/ogg"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("svg", "image/svg+xml"),
    ("pdf", "application/pdf"),
    ("epub", "application/epub+zip"),
    ("zip", "application/zip"),
    ("torrent", "application/x-bittorrent"),
    ("html", "text/html"),
    ("txt", "text/plain"),
];

/// The media type of what an address leads to, by its last path segment.
pub fn of_address(address: &str) -> &'static str {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    KNOWN.iter().find(|(known, _)| known.eq_ignore_ascii_case(end)).map_or(ANY, |(_, media)| media)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_address_tells() {
        assert_eq!(of_address("https://a.example/x.MP3?y=z.png#f.gif"), "audio/mpeg");
        assert_eq!(of_address("https://a.example/a.mp3/x"), ANY);
        assert_eq!(of_address(""), ANY);
    }
}
