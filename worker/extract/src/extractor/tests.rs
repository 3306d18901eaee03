use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::{PageInput, parse};

fn page(html: &str) -> crate::Page {
    let url = url::Url::parse("https://shop.test/a/b").unwrap();
    parse(&PageInput { url: &url, html, rendered: false })
}

fn apply(form: &Value, html: &str) -> Value {
    page(html).apply(&Extractor::new(form).unwrap()).unwrap().value
}

const PAGE: &str = r#"<main><h1> The  Blue<br>Kettle </h1><div class=price>from <b>1.234,50 €</b></div>
    <img class=main src="../k.png" alt="A kettle"><p class=stock>In Stock</p>
    <table><tr><th>Size<th>Kept<tr><td>2 l<td>yes<tr><td>3 l<td>no</table>
    <p class=tags>steel, blue , </p><time datetime="2026-01-05">5. Januar 2026</time>
    <div class=text><p>One <b>two</b>.</p><p>Three.</p><script>x</script></div></main>"#;

#[test]
fn a_form_reads_what_it_names() {
    let form = json!({"fields": {
        "name": {"select": "h1"},
        "price": {"select": ".price", "steps": [{"match": "[0-9.,]+"}, {"number": ","}]},
        "image": {"select": "img.main", "take": {"attribute": "SRC"}, "steps": ["url"]},
        "in_stock": {"select": ".stock", "steps": [{"map": {"in stock": true, "sold out": false}}]},
        "has_sale": {"select": ".sale", "take": "exists"},
        "sizes": {"each": "tr", "item": {"fields": {"size": {"select": "td"}, "kept": {"select": ":scope > td", "at": -1}}}},
        "tags": {"select": ".tags", "steps": [{"split": ","}, "upper"]},
        "day": {"select": "time", "steps": [{"replace": {"pattern": "Januar", "with": "January"}}, {"date": "%d. %B %Y"}]},
        "made": {"select": "time", "take": {"attribute": "datetime"}, "steps": [{"before": "-"}, "integer"]},
        "text": {"select": ".text", "take": "markdown"},
        "html": {"select": ".text p", "take": "html"},
        "own": {"select": ".price", "take": "own"},
        "none": {"select": ".none"},
        "kind": {"select": ".none", "default": "kettle"},
        "seller": {"within": ".seller", "fields": {"name": {"select": "b"}}},
    }});
    let expected = json!({
        "name": "The Blue Kettle", "price": 1234.5, "image": "https://shop.test/k.png", "in_stock": true,
        "has_sale": false, "sizes": [{"size": "2 l", "kept": "yes"}, {"size": "3 l", "kept": "no"}],
        "tags": ["STEEL", "BLUE"], "day": "2026-01-05", "made": 2026, "text": "One **two**.\n\nThree.",
        "html": "One <b>two</b>.", "own": "from", "none": null, "kind": "kettle", "seller": null,
    });
    assert_eq!(apply(&form, PAGE), expected);
    let Shape::Object(fields) = Extractor::new(&form).unwrap().shape() else { panic!() };
    let shape = |name: &str| fields.iter().find(|field| field.0 == name).unwrap().1.clone();
    assert_eq!((shape("price"), shape("in_stock"), shape("made")), (Shape::Number, Shape::Boolean, Shape::Integer));
    assert_eq!((shape("tags"), shape("has_sale")), (Shape::List(Shape::Text.into()), Shape::Boolean));
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let number =
        |text: &str, mark: &str| apply(&json!({"select": "p", "steps": [{"number": mark}]}), &format!("<p>{text}</p>"));
    for (text, mark, value) in [
        ("39", ".", json!(39)),
        ("$ 1,234.50", ".", json!(1234.5)),
        ("1.234.567", ",", json!(1_234_567)),
        ("-5 °C", ".", json!(-5)),
        ("12 500 kr", ",", json!(12500)),
        ("0,5 l", ",", json!(0.5)),
        ("4.5 of 5", ".", Value::Null),
        ("none", ".", Value::Null),
        ("Nr. 7", ".", json!(7)),
    ] {
        assert_eq!(number(text, mark), value, "{text}");
    }
    let whole = json!({"select": "p", "steps": ["integer"]});
    assert_eq!((apply(&whole, "<p>4</p>"), apply(&whole, "<p>4.5</p>")), (json!(4), Value::Null));
}

#[test]
fn marks_say_where_a_value_stood() {
    let form = Extractor::new(&json!({"fields": {"a": {"select": "td"}, "r": {"each": "li", "item": {}}}})).unwrap();
    let marks = |html: &str| page(html).apply(&form).unwrap().marks;
    let one = marks("<table class=t1><tr><th>Brand</th><td>X</td></tr></table><ul><li>1<li>2</ul>");
    let two = marks("<table class=t2><tr><th>Brand</th><td>Y</td></tr></table><ul><li>3</ul>");
    assert_eq!(one, two, "values, digits of classes and lengths do not count");
    assert_eq!(one["/a"].label, "Brand");
    let moved = marks("<table class=t1><tr><th>Colour</th><td>X</td></tr></table><ul><li>1</ul>");
    assert_eq!((moved["/a"].way, moved["/a"].label.as_str()), (one["/a"].way, "Colour"));
    let other = marks("<div class=x><table class=t1><tr><th>Brand</th><td>X</td></tr></table></div><ul><li>1</ul>");
    assert_eq!(other["/r/*"], one["/r/*"]);
}

#[test]
fn what_is_no_form_is_refused_with_the_place() {
    let deep = (0..20).fold(json!({}), |inner, _| json!({"fields": {"a": inner}}));
    let many: serde_json::Map<String, Value> = (0..400).map(|n| (format!("f{n}"), json!({}))).collect();
    for (form, words) in [
        (json!("x"), "/: an object"),
        (json!({"code": "x"}), "the keys are"),
        (json!({"fields": {"a": {"select": "p["}}}), "/fields/a/select: this is no CSS selector"),
        (json!({"fields": {"a": {"select": "p:has(b)"}}}), ":has"),
        (json!({"select": "a, ".repeat(200)}), "at most 300 bytes"),
        (json!({"select": 5}), "CSS selector"),
        (json!({"select": "p", "steps": ["eval"]}), "/steps/0: the steps are"),
        (json!({"select": "p", "steps": [{"match": "(((a{100}){100}){100})"}]}), "too large"),
        (json!({"select": "p", "steps": [{"match": "(?=a)"}]}), "not supported"),
        (json!({"select": "p", "steps": [{"date": "%Q"}]}), "strftime"),
        (json!({"select": "p", "steps": [{"number": "x"}]}), "decimal mark"),
        (json!({"select": "p", "steps": [{"split": ","}, "upper", {"split": ";"}]}), "/steps: at most one split"),
        (json!({"select": "p", "take": {"attribute": 1}}), "/take"),
        (json!({"select": "p", "default": "https://evil.test"}), "no address"),
        (json!({"select": "p", "steps": [{"map": {"a": "www.evil.test"}}]}), "no address"),
        (json!({"select": "p", "default": ["x"]}), "plain value"),
        (json!({"select": "p", "at": 5000}), "/at"),
        (json!({"each": "p", "fields": {}}), "the keys are fields and within"),
        (deep, "nested at most"),
        (json!({ "fields": many }), "at most 300 parts"),
        (json!({"select": "p", "default": "x".repeat(60_000)}), "longer than"),
    ] {
        let error = Extractor::new(&form).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// Of this thread, whatever else the machine has to do.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned() as u32)
}

/// Applies within the bound, whatever comes of it.
fn bounded(form: &Value, html: &str) -> Result<Applied, TooMuch> {
    let (page, extractor) = (page(html), Extractor::new(form).unwrap());
    let began = cpu_time();
    let applied = page.apply(&extractor);
    let took = cpu_time().saturating_sub(began);
    assert!(took < Duration::from_secs(8), "{took:?} for {form}");
    applied
}

#[test]
fn hostile_pages_and_forms_end_in_bounded_time() {
    let wide = format!("<main>{}</main>", "<p class=a>x</p>".repeat(60_000));
    let deep = format!("{}x", "<div class=a>".repeat(500)).repeat(60);
    // Each element counts its siblings.
    assert_eq!(bounded(&json!({"each": "p:nth-child(7n+1):nth-last-child(3n)", "item": {}}), &wide), Err(TooMuch));
    assert_eq!(bounded(&json!({"each": "p", "item": {}}), &wide), Err(TooMuch), "too many items");
    let back = ".a ".repeat(60);
    let _ = bounded(&json!({"each": format!("{back} b"), "item": {}}), &deep);
    let _ = bounded(&json!({"each": format!("{} b", "p ~ ".repeat(40) + "p"), "item": {}}), &wide);
    let nested = (0..6).fold(json!({}), |inner, _| json!({"each": "div", "item": inner}));
    assert_eq!(bounded(&nested, &deep), Err(TooMuch));
    let fields: serde_json::Map<String, Value> =
        (0..250).map(|n| (format!("f{n}"), json!({"select": "q:not(p):not(.b) ~ i", "at": -1}))).collect();
    let _ = bounded(&json!({ "fields": fields }), &wide);
    let text = format!("<p>{}</p>", "a".repeat(9_000));
    let slow =
        json!({"each": "p", "item": {"steps": [{"match": "(a{1,60}a{1,60}){1,2}b"}, {"match": "(.*)(.*)(.*)c"}]}});
    if Extractor::new(&slow).is_ok() {
        let _ = bounded(&slow, &text.repeat(200));
    }
    // One value, of many parts that grow and are gone through again and again.
    let mut steps = vec![json!({"split": ","})];
    steps.extend(std::iter::repeat_n(json!({"replace": {"pattern": "", "with": "a".repeat(200)}}), 11));
    let parts = format!("<p>{}</p>", "a,".repeat(200));
    assert_eq!(bounded(&json!({"select": "p", "steps": steps}), &parts), Err(TooMuch));
    let huge = format!("<main>{}</main>", "word ".repeat(400_000));
    assert_eq!(bounded(&json!({"select": "main"}), &huge), Err(TooMuch));
    let grows = json!({"select": "p", "steps": [{"replace": {"pattern": "", "with": "x".repeat(200)}}]});
    assert!(bounded(&grows, &text).unwrap().value.as_str().unwrap().len() <= 10_000);
}
