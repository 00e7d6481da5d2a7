//! Media types, by the ends of names.

const KINDS: &[(&str, &str)] = &[
    ("apk", "application/vnd.android.package-archive"),
    ("avif", "image/avif"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("deb", "application/vnd.debian.binary-package"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4s", "video/iso.segment"),
    ("m4v", "video/mp4"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mkv", "video/matroska"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpd", "application/dash+xml"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("txt", "text/plain; charset=utf-8"),
    ("vtt", "text/vtt; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("xz", "application/x-xz"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// The media type of what has this file name.
pub(crate) fn of(name: &[u8]) -> &'static str {
    let end = name.rsplit(|b| *b == b'.').next().filter(|end| end.len() < name.len());
    let end = end.map(|end| String::from_utf8_lossy(end).to_ascii_lowercase());
    let known = |end: String| KINDS.binary_search_by(|(e, _)| (*e).cmp(&end)).ok();
    end.and_then(known).map_or("application/octet-stream", |at| KINDS[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_found_in() {
        assert!(KINDS.is_sorted());
        assert_eq!(of(b"film.M3U8"), "application/vnd.apple.mpegurl");
        assert_eq!(of(b"a.tar.gz"), "application/gzip");
        for unknown in [&b"gz"[..], b"", b"a.", b"a.unknown"] {
            assert_eq!(of(unknown), "application/octet-stream");
        }
    }
}
