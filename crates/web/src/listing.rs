//! What a folder has, as a page and as JSON.

use crate::address::escaped;
use onym_repo::file::Listed;
use serde_json::{Value, json};

/// A page with a link for each name.
pub(crate) fn page(title: &str, listed: &[Listed]) -> String {
    let mut page = format!(
        "<!doctype html>\n<meta charset=utf-8>\n<title>{0}</title>\n<h1>{0}</h1>\n<ul>\n",
        plain(title)
    );
    for one in listed {
        let end = if one.is_folder { "/" } else { "" };
        let shown = plain(&String::from_utf8_lossy(&one.name));
        // With ./ a name that looks like a scheme is none.
        page += &format!("<li><a href=\"./{}{end}\">{shown}{end}</a>\n", escaped(&one.name));
    }
    page + "</ul>\n"
}

/// The same as `onym ls --json` prints it.
pub(crate) fn value(listed: &[Listed]) -> Value {
    let one = |one: &Listed| json!({ "name": String::from_utf8_lossy(&one.name), "folder": one.is_folder });
    listed.iter().map(one).collect()
}

/// `text` without what HTML understands.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text_on_a_page_whatever_they_are() {
        let listed = [
            Listed { name: b"<script>alert(1)</script>".to_vec(), is_folder: false },
            Listed { name: b"\" onclick=\"x".to_vec(), is_folder: true },
            Listed { name: b"javascript:x".to_vec(), is_folder: false },
        ];
        let page = page("</title><script>", &listed);
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(page.matches("onclick=\"").count(), 0, "{page}");
        assert!(page.contains("href=\"./javascript%3Ax\""), "{page}");
        assert!(page.contains("href=\"./%22%20onclick%3D%22x/\""), "{page}");
    }
}
