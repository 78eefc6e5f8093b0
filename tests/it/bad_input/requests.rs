//! Bodies, addresses, methods and query parameters that are wrong.

use reqwest::Method;
use reqwest::header::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Case, check_all, open};
use crate::api::{order, placed};
use crate::harness::shop::{Shop, on_both_stores};

on_both_stores!(
    bodies_that_are_no_json_objects,
    bodies_that_are_not_announced_as_json_or_too_large,
    wrong_query_parameters,
    wrong_addresses_and_methods,
    bodies_up_to_the_limit_are_read,
    a_refused_body_leaves_no_broken_connection_behind,
);

async fn bodies_that_are_no_json_objects(shop: Shop) {
    let mut cases = Vec::new();
    for path in ["/orders", "/products"] {
        for malformed in [
            &b""[..],
            b"{",
            b"hello",
            b"{\"sku\":\"lamp\",}",
            b"{\"sku\":\"lamp\"} {}",
            b"\xff\xfe",
            b"{\"customer_id\":\"\xff\"}",
            b"{\"quantity\":01}",
            // JSON, but no object.
            b"[]",
            b"null",
            b"\"lamp\"",
            b"7",
        ] {
            cases.push(Case::post(path, malformed, 400, "malformed"));
        }
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        cases.push(Case::post(path, deep, 400, "malformed"));
    }
    check_all(&shop, cases).await;
}

async fn bodies_that_are_not_announced_as_json_or_too_large(shop: Shop) {
    let good = order("lamp", 1, "ada").to_string();
    let mut cases = Vec::new();
    for path in ["/orders", "/products"] {
        for content_type in [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("application/jsonp"),
            Some("text/json"),
            Some("json"),
            Some(""),
        ] {
            let mut case = Case::post(path, good.clone(), 415, "unsupported-media-type");
            case.headers.clear();
            if let Some(content_type) = content_type {
                case = case.header("content-type", HeaderValue::from_static(content_type));
            }
            case.what = format!("{} as {content_type:?}", case.what);
            cases.push(case);
        }
        for length in [16 * 1024 + 1, 200 * 1024] {
            let large = " ".repeat(length - good.len()) + &good;
            cases.push(Case::post(path, large, 413, "body-too-large"));
        }
    }
    check_all(&shop, cases).await;
}

async fn wrong_query_parameters(shop: Shop) {
    let mut cases = vec![
        Case::query("/orders?after=lamp", &["after"]),
        Case::query("/orders?after=", &["after"]),
        Case::query("/orders?status=open", &["status"]),
        Case::query("/orders?status=", &["status"]),
        Case::query("/orders?sku=%7Blamp%7D", &["sku"]),
        Case::query("/orders?customer_id=", &["customer_id"]),
        Case::query("/orders?customer_id=a%00da", &["customer_id"]),
        Case::query("/orders?customer=ada", &["customer"]),
        Case::query("/orders?sku=lamp&sku=mug", &["sku"]),
        Case::query("/orders?sku=lamp&sku=lamp", &["sku"]),
        Case::query("/orders?limit=0&after=x&status=x&colour=red", &["limit", "after", "status", "colour"]),
        Case::query("/products?after=a%20b", &["after"]),
        Case::query("/products?sku=lamp", &["sku"]),
    ];
    for path in ["/orders", "/products"] {
        for limit in ["0", "1001", "-1", "1.5", "ten", "", "99999999999999999999"] {
            cases.push(Case::query(&format!("{path}?limit={limit}"), &["limit"]));
        }
        cases.push(Case::query(&format!("{path}?limit=1&limit=1"), &["limit"]));
    }
    check_all(&shop, cases).await;
}

async fn wrong_addresses_and_methods(shop: Shop) {
    let mut cases = Vec::new();
    for path in [
        "/nowhere",
        "/orders/",
        "/orders/a/b",
        "/products/lamp/x",
        "/problems",
        "/problems/nonsense",
        "/problems/%FF",
        "//orders",
        "/ORDERS",
        "/docs/nowhere",
    ] {
        cases.push(Case::bare(Method::GET, path, 404, "not-found"));
    }
    for (method, path) in [
        (Method::DELETE, "/orders"),
        (Method::PUT, "/products"),
        (Method::POST, "/products/lamp"),
        (Method::DELETE, "/products/lamp"),
        (Method::PATCH, "/orders/4711"),
        (Method::POST, "/livez"),
        (Method::POST, "/metrics"),
        (Method::OPTIONS, "/orders"),
    ] {
        cases.push(Case::bare(method, path, 405, "method-not-allowed"));
    }
    check_all(&shop, cases).await;

    // RFC 9110 §15.5.6: such an answer says what would be allowed.
    let request = shop.instance.client().delete(shop.instance.url("/orders"));
    let answer = shop.instance.send(request).await;
    let allowed = answer.headers["allow"].to_str().expect("text");
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

async fn bodies_up_to_the_limit_are_read(shop: Shop) {
    let instance = open(&shop).await;
    for content_type in ["application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.shop.order+json"] {
        let body = format!("{:1$}", order("lamp", 1, "ada").to_string(), 16 * 1024);
        let request = instance.client().post(instance.url("/orders")).header("content-type", content_type).body(body);
        placed(&instance.send(request).await);
    }
}

/// The next request over the same connection is answered, unless the client was told that there can be none.
async fn a_refused_body_leaves_no_broken_connection_behind(shop: Shop) {
    let kilobytes = |number: usize| " ".repeat(number * 1024);
    for (status, content_type, body) in [
        ("413", "application/json", kilobytes(17)),
        ("413", "application/json", kilobytes(900)),
        ("413", "application/json", kilobytes(3000)),
        ("415", "text/plain", kilobytes(15)),
        ("400", "application/json", kilobytes(15)),
    ] {
        let mut connection = shop.instance.connect().await;
        let request = format!(
            "POST /orders HTTP/1.1\r\nHost: shop\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        // Where the service does not want it all, the rest goes nowhere.
        let _ = connection.write_all(request.as_bytes()).await;
        let head = read_answer(&mut connection).await;
        let length = body.len();
        let Some(head) = head else {
            assert!(length > 1024 * 1024, "{length} bytes got no answer");
            continue;
        };
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{head}");
        if !head.contains("connection: close") {
            let next = b"GET /livez HTTP/1.1\r\nHost: shop\r\n\r\n";
            connection.write_all(next).await.expect("it is open");
            let head = read_answer(&mut connection).await;
            let head = head.unwrap_or_else(|| panic!("no answer after {status}"));
            assert!(head.starts_with("http/1.1 200"), "{head}");
        }
    }
}

/// The head of an answer, in lower case, with its body read and dropped; `None` when the connection broke before.
async fn read_answer(connection: &mut TcpStream) -> Option<String> {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(connection.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1)?.lines().next()?;
    let mut body = vec![0; length.parse().expect("a number")];
    connection.read_exact(&mut body).await.ok()?;
    Some(head)
}
