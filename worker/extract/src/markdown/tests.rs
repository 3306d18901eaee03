//! Conversion rules on small inputs.

use super::super::guard;
use super::super::measure::Measures;
use super::*;

fn convert_page(html: &str, remove_base64_images: bool) -> String {
    let dom = guard::parse(html).dom;
    let addresses = Addresses::of_page(&dom, &url::Url::parse("https://x.test/d/page?q=1").expect("a URL"));
    let dropped = Measures::of(&dom, false).invisible;
    convert(&Job { dom: &dom, addresses: &addresses, dropped: &dropped, remove_base64_images }, &[0]).0
}

fn markdown(html: &str) -> String {
    convert_page(html, true).trim_end().to_owned()
}

fn check(cases: &[(&str, &str)]) {
    for (html, want) in cases {
        assert_eq!(markdown(html), *want, "{html}");
    }
}

#[test]
fn headings_paragraphs_and_rules() {
    check(&[
        ("<h1>A <b>b</b></h1><p>x</p><p>y</p><h6>Z</h6>", "# A b\n\nx\n\ny\n\n###### Z"),
        ("<h2>Set up<a class=headerlink href=#s>¶</a></h2>", "## Set up"),
        ("<h2>two<br>lines</h2>", "## two lines"),
        ("<h3> </h3><p>a<hr>b", "a\n\n---\n\nb"),
        ("a<div>b</div>c", "a\n\nb\n\nc"),
    ]);
}

#[test]
fn spans_keep_their_marks_outside_whitespace() {
    check(&[
        ("a<b> b </b>c <i>d</i><em></em> <s>e</s>", "a **b** c *d* ~~e~~"),
        ("<b>a</b><b>b</b>", "**ab**"),
        ("<b>x <strong>y</strong></b>", "**x y**"),
        ("<b><p>one</p><p>two</p></b>", "**one**\n\n**two**"),
        ("x<code>a`b</code>y <code>*z*</code>", "x``a`b``y `*z*`"),
        ("E = mc<sup>2</sup>, H<sub>2</sub>O, <q>so</q>", "E = mc<sup>2</sup>, H<sub>2</sub>O, \"so\""),
        ("a<br>b<br><br>c", "a  \nb\n\nc"),
    ]);
}

#[test]
fn links_are_absolute_and_survive_blocks_and_brackets() {
    check(&[
        ("<a href=../up>u</a> <a href='?z=2&amp;y'>q</a>", "[u](https://x.test/up) [q](https://x.test/d/page?z=2&y)"),
        ("<a href='javascript:x()'>do</a> <a>plain</a> <a href=/e></a>", "do plain"),
        ("<a href=/c><h3>Head</h3><p>Text</p></a>", "### [Head](https://x.test/c)\n\nText"),
        (
            "<a href=/c><div><img src=/i.png alt=i></div><p>Text</p></a>",
            "![i](https://x.test/i.png)\n\n[Text](https://x.test/c)",
        ),
        ("<a href=/x>a ] b</a>", "[a \\] b](https://x.test/x)"),
        ("hey!<a href=/x>y</a>", "hey\\![y](https://x.test/x)"),
        ("<a href=/x>line\n\n one<br>two</a>", "[line one two](https://x.test/x)"),
        ("<a href=#main>Skip to content</a><p>x", "x"),
    ]);
}

#[test]
fn images_take_the_best_source_and_data_becomes_a_placeholder() {
    check(&[
        ("<img src=i.png alt='a [b]\n c'>", "![a [b] c](https://x.test/d/i.png)"),
        ("<img src=/t.gif width=1 height=1>x", "x"),
        ("<img alt=chart src='data:image/png;base64,AAAA'>", "![chart](<Base64-Image-Removed>)"),
        ("<picture><source srcset=/a.webp><img src=/a.jpg alt=p></picture>", "![p](https://x.test/a.jpg)"),
        ("<figure><img src=/f.png><figcaption>Cap</figcaption></figure>", "![](https://x.test/f.png)\n\nCap"),
    ]);
    assert!(
        convert_page("<img alt=c src='data:image/png;base64,AAAA'>", false).contains("](data:image/png;base64,AAAA)")
    );
}

#[test]
fn lists_nest_number_and_hold_blocks() {
    check(&[
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", "- a\n  - b\n- c"),
        ("<ol start=9><li>i<li>j<ul><li>k</ul></ol>", "9. i\n10. j\n    - k"),
        ("<ul><li><p>a</p><p>b</p><li>c</ul>", "- a\n\n  b\n- c"),
        ("<ol><li>Run<pre>x\n\ny</pre><li>Done</ol>", "1. Run\n\n   ```\n   x\n\n   y\n   ```\n2. Done"),
        ("<ul><li><input type=checkbox checked> a<li><input type=checkbox> b</ul>", "- [x] a\n- [ ] b"),
        ("<ul><li>x</li><ul><li>inner</li></ul></ul><p>y", "- x\n  - inner\n\ny"),
        ("<ul><li></li><li>x</li></ul>", "- x"),
        ("<dl><dt>T<dd>D</dl>", "**T**\n\nD"),
    ]);
}

#[test]
fn quotes_prefix_every_line() {
    check(&[
        ("<blockquote><p>a</p><blockquote>b</blockquote><ul><li>c</ul></blockquote>d", "> a\n>\n> > b\n>\n> - c\n\nd"),
        ("<blockquote>a<br>b</blockquote><blockquote>c</blockquote>", "> a  \n> b\n\n> c"),
    ]);
}

#[test]
fn code_blocks_keep_text_and_find_their_language() {
    check(&[
        ("<pre><code class='language-rust'>  a &lt; b\n*c*\n</code></pre>", "```rust\n  a < b\n*c*\n```"),
        ("<pre>a<br>b<div>c</div>d</pre>", "```\na\nb\nc\nd\n```"),
        (
            "<pre>a<iframe>x</iframe><noembed>x</noembed><i style='display:none'>x</i>b</pre><p>c d e",
            "```\nab\n```\n\nc d e",
        ),
        ("<pre>```\nx</pre>", "````\n```\nx\n````"),
        ("<div class='highlight-python x'><pre>p</pre></div>", "```python\np\n```"),
        ("<pre><span class=lineno>1</span><code>x</code></pre>", "```\nx\n```"),
        ("<pre data-lang=go><button>Copy</button>x</pre>", "```go\nx\n```"),
        (
            "<table class='highlight js-file-line-container'> <tr> <td class=blob-num></td> <td class=blob-code>def f(a|b):</td> \
             </tr> <tr> <td class=blob-num></td> <td class=blob-code>\n</td> </tr> <tr> <td class=blob-num></td> \
             <td class=blob-code>    return *a*</td> </tr> </table>",
            "```\ndef f(a|b):\n\n    return *a*\n```",
        ),
    ]);
}

#[test]
fn tables_become_grids_or_blocks() {
    check(&[
        ("<table><tr><th>A<th align=right>B<tr><td>1<td>a|b</table>", "| A | B |\n| --- | --: |\n| 1 | a\\|b |"),
        ("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "| | |\n| --- | --- |\n| a | b |\n| c | d |"),
        (
            "<table><tr><th>A<th>B<th>C<tr><td colspan=2>w<td>z<tr><td rowspan=2>t<td>1<td>2<tr><td>3<td>4</table>",
            "| A | B | C |\n| --- | --- | --- |\n| w | | z |\n| t | 1 | 2 |\n| | 3 | 4 |",
        ),
        ("<table><tr><th>A<tr><td><p>x</p><ul><li>y<li>z</ul></table>", "| A |\n| --- |\n| x<br>- y<br>- z |"),
        ("<table><tr><td><h2>Head</h2><p>text</p></table>", "## Head\n\ntext"),
        ("<table><caption>C</caption><tr><th>A<tr><td>1</table>", "C\n\n| A |\n| --- |\n| 1 |"),
        ("<table><tr><td>out<table><tr><th>A<tr><td>1</table></table>", "out\n\n| A |\n| --- |\n| 1 |"),
        ("<table><tr><th>A<tr><td>x<table><tr><td>in<td>ner</table>y</table>", "| A |\n| --- |\n| x<br>in ner<br>y |"),
        ("<table role=presentation><tr><td>a<td>b</table>", "a b"),
        ("<table><tr><td></table>x", "x"),
    ]);
}

#[test]
fn mathematics_appears_once() {
    check(&[
        (
            "<p>E <math><semantics><mi>E</mi><annotation encoding='application/x-tex'>E=m</annotation></semantics></math>!</p>",
            "E $E=m$!",
        ),
        ("<body><script type='math/tex; mode=display'>a_b</script>", "$$a_b$$"),
    ]);
}

#[test]
fn text_that_looks_like_markdown_is_escaped() {
    check(&[
        ("<p># a<p>1. b<p>- c<p>> d<p>*e*", "\\# a\n\n1\\. b\n\n\\- c\n\n\\> d\n\n\\*e\\*"),
        ("<p>see [a](b) &lt;div&gt;", "see [a]\\(b) \\<div>"),
    ]);
}

#[test]
fn what_cannot_be_read_is_left_out() {
    check(&[
        (
            "a<script>b</script><style>c</style><template>d</template><svg><text>e</text></svg><select><option>f</select><!-- g -->h",
            "ah",
        ),
        ("<p hidden>x<p>yes<iframe src=/f>z</iframe>", "yes"),
    ]);
}

#[test]
fn depth_and_width_have_limits() {
    let deep = format!("{}x", "<ul><li>".repeat(400));
    assert!(markdown(&deep).len() < 2 * MAX_PREFIXES + 2);
    let wide = format!("<table>{}</table>", "<tr><td colspan=1000 rowspan=1000>x<td rowspan=9999>y".repeat(300));
    assert!(markdown(&wide).len() < 100_000);
}
