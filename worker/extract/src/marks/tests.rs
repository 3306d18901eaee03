//! Pages as the generators of manuals and blogs make them.

use crate::{ExtractOptions, PageInput, extract};

const PROSE: &str =
    "The harbour was quiet in the morning, and the boats came back before noon with little to show for it. ";

fn read(html: &str) -> String {
    let url = url::Url::parse("https://x.test/docs/16/boats.html").expect("a URL");
    let options =
        ExtractOptions { markdown: true, only_main_content: true, block_ads: true, ..ExtractOptions::default() };
    extract(&PageInput { url: &url, html, rendered: false }, &options).markdown.expect("asked for")
}

/// Reads a page with two paragraphs below `body` and checks what it holds.
fn check(body: &str, gone: &[&str], kept: &[&str]) {
    let markdown = read(&body.replace("PROSE", &format!("<p>{0}</p><p>{0}</p>", PROSE.repeat(3))));
    for word in gone {
        assert!(!markdown.contains(word), "{word} is in {markdown}");
    }
    for word in kept {
        assert!(markdown.contains(word), "{word} is not in {markdown}");
    }
}

#[test]
fn permalinks_go_from_terms_captions_and_tables() {
    check(
        "<h1>Boats<a class=headerlink href='#boats' title='Permalink to this heading'>¶</a></h1>PROSE\
         <dl class='py method'><dt class=sig id=b.land><span>land</span>(<em>n</em>)<a class=headerlink href='#b.land'>¶</a></dt><dd>Lands.</dd><dt id=t><code>&gt;&gt;&gt;</code><a class=headerlink href='#t'>¶</a></dt><dd>Asks.</dd></dl>\
         <table><caption><span>Catch</span><a class=headerlink href='#id1'>¶</a></caption><tr><th>Day<th>Fish<tr><td>one <a href='#one'>#</a><td>2</table>\
         <div class=code-block-caption><span>Listing</span><a class=headerlink href='#id2'>¶</a></div>\
         <section id=impl class=impl><a href='#impl' class=anchor>§</a><h3 class=code-header>impl Boat</h3></section>\
         <h2 id=sea><a class=anchor aria-hidden=true href='boats.html#sea'><svg><path d=M0/></svg></a>Sea</h2>\
         <h2 id=air>Air <a href='https://x.test/docs/16/boats.html#air'>#</a></h2>",
        &["¶", "§", "#air", "#sea", "#one", "#impl"],
        &["# Boats\n", "**land(*n*)**", "Catch\n", "| one |", "Listing", "### impl Boat", "## Sea", "## Air\n"],
    );
}

#[test]
fn signs_that_a_reader_wants_stay() {
    check(
        "<h1>The pilcrow</h1>PROSE<p>The ¶ marks a paragraph, § a section, and # a number; see <a href='#fn1'>§</a> and <a href='/c#'>C#</a>.</p>\
         <table><tr><th>Sign<th>Name<tr><td><a href='#pilcrow'>¶</a><td>pilcrow</table><pre>a # b ¶</pre><h2>C# and F#</h2>",
        &[],
        &["The ¶ marks", "§ a section", "# a number", "[§](", "[C#](", "| [¶](", "a # b ¶", "## C# and F#"],
    );
}

#[test]
fn signs_that_lead_to_the_source_of_a_text_go_from_its_end() {
    // PostgreSQL's release notes.
    check(
        "<h1>Release</h1>PROSE<ul><li><p>Convert newlines to spaces (Ada) <a class=ulink href=https://git.test/c/1>§</a>\
         <a class=ulink href=https://git.test/c/2>§</a></p></li></ul><p><a href=/law>§</a></p>",
        &["git.test"],
        &["(Ada)\n", "[§](https://x.test/law)"],
    );
}

#[test]
fn pictures_that_lead_to_the_first_page_go_from_above_the_page() {
    // Publican.
    check(
        "<p id=title><a href=http://site.test><img alt='Product Site' src=l.png></a><a href=index.html><img alt=MANUAL \
         src=r.png></a></p><p><a href=big.jpg><img alt=harbour src=h.png></a></p><h2>Boats</h2>PROSE",
        &["Product Site", "MANUAL"],
        &["harbour", "## Boats"],
    );
    check("<h1>Ours</h1>PROSE<p><a href=/><img alt=Home src=l.png></a></p>PROSE", &[], &["Home"]);
}

#[test]
fn headings_that_link_to_themselves_are_headings() {
    check(
        "<main><h1>Book</h1>PROSE<h2 id=install><a class=header href='#install'>Installation</a></h2><p>Words.</p>\
         <h2 id=x><a href='#elsewhere'>Elsewhere</a></h2></main>",
        &["[Installation]"],
        &["## Installation\n", "[Elsewhere](https://x.test/docs/16/boats.html#elsewhere)"],
    );
}

#[test]
fn rows_of_steps_go_whoever_made_them() {
    let docbook = "<div class=navheader><table summary='Navigation header'><tr><th colspan=3>O.4. CHAPTER</th></tr><tr><td><a accesskey=p href=a.html>Prev</a> <td><a href=u.html>Up</a><th>Appendix CHAPTER<td><a href=n.html>Next</a></table><hr></div>\
         <h2>Boats</h2><p>Short page.</p><div class=navfooter><hr><table><tr><td><a href=a.html>Prev</a><td><a href=u.html>Up</a><td><a href=n.html>Next</a><tr><td>O.3. NEIGHBOUR<td><a href=i.html>Home</a><td>O.5. NEIGHBOUR</table></div>";
    check(docbook, &["Prev", "Next", "CHAPTER", "NEIGHBOUR"], &["## Boats", "Short page."]);
    let sphinx = "<div class=related><h3>Navigation</h3><ul><li class=right><a href=i.html>index</a></li><li><a href=n.html>next</a> |</li><li><a href=p.html>previous</a> |</li></ul></div><h1>Boats</h1>PROSE";
    check(sphinx, &["previous", "index"], &["# Boats"]);
    let tex4ht = "<div class=crosslinks><p class=noindent>[<a href=n.html>next</a>] [<a href=p.html>prev</a>] [<a href=p.html#tail>prev-tail</a>] [<a href='#tail'>tail</a>] [<a href=u.html>up</a>]</p></div><h1>Boats</h1>PROSE";
    check(tex4ht, &["prev", "tail"], &["# Boats"]);
    let texinfo = "<div class=header><p>Next: <a href=n.html accesskey=n>NEIGHBOUR</a>, Previous: <a href=p.html>NEIGHBOUR</a>, Up: <a href=u.html>TOP</a> &nbsp; [<a href=c.html>Contents</a>][<a href=i.html>Index</a>]</p></div><h1>Boats</h1>PROSE";
    check(texinfo, &["NEIGHBOUR", "[Contents]"], &["# Boats"]);
    let long = "Functions and Variables for NEIGHBOURING Boats";
    let texinfo = format!(
        "<p>Next: <a href=n.html rel=next>{long}</a>, Previous: <a href=p.html rel=prev>{long}</a>, Up: <a href=u.html rel=up>TOP</a> &nbsp; [<a href=c.html rel=contents>Contents</a>]</p><h1>Boats</h1>PROSE"
    );
    check(&texinfo, &["NEIGHBOURING", "Next:", "[Contents]"], &["# Boats"]);
    let plain = "<table><tr><td><a href=p.html>&lt;&lt; Previous</a><td><a href=i.html>Contents</a><td><a href=n.html>Next &gt;&gt;</a></table><h1>Boats</h1>PROSE<p><a href=p.html>Previous page</a> | <a href=n.html>Next page</a></p>";
    check(plain, &["Previous", "Next"], &["# Boats"]);
    let javadoc = "<div class=topNav><ul class=navList><li><a href=o.html>Overview</a></li><li>Class</li></ul></div><div class=subNav><div>Summary: <a href='#m'>Method</a></div></div><h2 class=title>Class Boat</h2>PROSE<div class=bottomNav><a href=o.html>Overview</a></div>";
    check(javadoc, &["Overview", "Summary:"], &["Class Boat"]);
}

#[test]
fn prose_about_steps_and_lists_of_links_stay() {
    check(
        "<h1>Paging</h1>PROSE<p>Answers carry links named <a href=n.html>next</a> and <a href=p.html>previous</a>, which lead through the pages of a long list one after another until the end.</p>\
         <ul><li><a href=i.html>Index</a> of boats</li><li><a href=h.html>Harbours</a></li></ul>\
         <ul><li>Renames <a href=n.html><code>next()</code></a> to <a href=m.html><code>__next__</code></a>.</li></ul>",
        &[],
        &["Renames", "[next](", "[previous](", "[Index](", "[Harbours]("],
    );
}

#[test]
fn breadcrumbs_edit_links_and_versions_go() {
    check(
        "<p><a href=/>MANUAL</a> » <a href=/docs/>CRUMB</a> » Boats</p><div>Supported versions: <a href=/docs/17/boats.html>17</a> / <a href=/docs/16/boats.html>16</a> / <a href=/docs/devel/boats.html>devel</a></div>\
         <h1>Boats</h1>PROSE<div><a href=https://git.test/x>Edit this page on GitHub</a></div><p>Released: <a href=/v1.tar>1.0</a>, <a href=/v2.tar>2.0</a>, <a href=/v3.tar>3.0</a>.</p>\
         <p>To mend a fault, <a href=/e>edit this page</a> and send what you have changed to us by mail.</p>",
        &["MANUAL", "CRUMB", "[17]", "devel", "GitHub"],
        &["# Boats", "[2.0](", "[edit this page]("],
    );
}

#[test]
fn boxes_of_places_on_the_page_go_and_other_lists_stay() {
    check(
        "<h1>Boats</h1><div class=box><p>On this page</p><ul><li><a href='#a'>ALPHA</a><li><a href='#b'>BETA</a></ul></div>PROSE\
         <h2>Contents</h2><ul><li><a href='#a'>ALPHA</a><li><a href='#b'>BETA</a></ul><h2 id=a>First</h2>PROSE\
         <h2>Contents</h2><ul><li><a href='/a'>Gamma</a><li><a href='/b'>Delta</a></ul><ul><li><a href='#c'>Epsilon</a><li><a href='#d'>Zeta</a></ul>",
        &["ALPHA", "BETA", "On this page"],
        &["## First", "Gamma", "## Contents", "Epsilon"],
    );
}

#[test]
fn sources_and_copy_buttons_of_rustdoc_go() {
    check(
        "<main><div class=main-heading><div class=rustdoc-breadcrumbs><a href=../i.html>CRATE</a>::<wbr><a href=i.html>sea</a></div><h1>Struct <span>Boat</span>&nbsp;<button id=copy-path title='Copy item path to clipboard'>Copy item path</button></h1><span class=sub-heading><span class=since>1.36.0</span> · <a class=src href=s.rs>Source</a></span></div>PROSE\
         <section id=m class=method><a class='src rightside' href=s.rs>Source</a><h4 class=code-header>fn land()</h4></section></main>",
        &["Copy", "Source", "CRATE", "·"],
        &["# Struct Boat", "1.36.0", "#### fn land()"],
    );
}

#[test]
fn code_is_whole_without_its_line_numbers() {
    for block in [
        "<table><tr><td class=crayon-nums><div>1</div><div>2</div></td><td><pre>let a;\n  let b;</pre></td></tr></table>",
        "<table><tr><td><pre>1\n2</pre></td><td><pre>let a;\n  let b;</pre></td></tr></table>",
        "<pre class=rust><code><a href='#1' id=1>1</a>let a;\n<a href='#2' id=2>2</a>  let b;</code></pre>",
        "<div class=fragment><div class=line><a name=l1></a><span class=lineno>    1</span>let a;</div><div class=line><span class=lineno>    2</span>  let b;</div></div>",
        "<table class=syntaxhighlighter><tr><td class=gutter><div class='line number1'>1</div><div class='line number2'>2</div></td><td class=code><div class=container><div class='line number1'><code class=plain>let a;</code></div><div class='line number2'><code>&nbsp;&nbsp;</code><code class=plain>let b;</code></div></div></td></tr></table>",
    ] {
        let markdown = read(&format!("<h1>Code</h1><p>{0}</p>{block}<p>{0}</p>", PROSE.repeat(3)));
        assert!(markdown.contains("let a;\n  let b;\n```") && !markdown.contains("1\n2"), "{block}: {markdown}");
        assert_eq!(markdown.matches(['1', '2']).count(), 0, "{block}: {markdown}");
    }
    let numbers = read(&format!("<h1>Data</h1><p>{0}</p><pre>1\n2\n3</pre><p>{0}</p>", PROSE.repeat(3)));
    assert!(numbers.contains("```\n1\n2\n3\n```"), "{numbers}");
}

#[test]
fn a_section_named_after_its_heading_is_what_it_says() {
    // Sphinx: Python's page about cookies.
    let section = "<section id=cookie-objects><h2>Cookie Objects<a class=headerlink href='#cookie-objects'>¶</a></h2>\
        <p>One of these is read from a header.</p></section>";
    check(
        &format!("<h1>Cookies</h1>PROSE PROSE{section}<div id=cookie-note><h2>Cookies</h2><p>We use them.</p></div>"),
        &["¶", "We use them"],
        &["## Cookie Objects", "is read from a header"],
    );
}

#[test]
fn titles_of_the_second_level_stay() {
    // Javadoc before its release 17.
    check(
        "<main role=main><div class=header><div class=subTitle>Package x</div><h2 title='Interface Boat' class=title>Interface \
         Boat</h2></div><div class=contentContainer>PROSE</div></main>",
        &[],
        &["## Interface Boat", "The harbour"],
    );
}

#[test]
fn what_doxygen_puts_around_each_page_goes() {
    check(
        "<div id=top><div id=titlearea><table><tr><td><div id=projectname>json-boat <span>0.16</span></div></td></tr></table></div>\
         <div id=nav-path class=navpath><ul><li><a href=d.html>build</a></ul></div></div>\
         <div class=header><div class=summary><a href='#fields'>Data Fields</a></div><div class=headertitle><div class=title>build Directory Reference</div></div></div>\
         <div class=contents><table><tr><td>file</td><td><a href=j.html>boat.h</a></td></tr></table>PROSE</div>\
         <hr class=footer><address class=footer><small>Generated on Sun for json-boat by <a href='https://x.test/d'>d</a> 1.9.4\
         </small></address>",
        &["0.16", "Generated on", "Data Fields"],
        &["# build Directory Reference\n", "boat.h"],
    );
    check("<h1>Boats</h1>PROSE<address>Written by hand in Oslo</address>PROSE", &[], &["Oslo"]);
}

#[test]
fn a_table_of_contents_with_one_section_goes_with_its_title() {
    // DocBook, in a manual on one page.
    check(
        "<h1>Boats</h1>PROSE<div class=chapter><h1 id=sub>Oars</h1><div class=toc><p><b>Table of Contents</b></p><dl class=toc><dt>\
         <span class=section><a href='#pit'>Pitfalls with oars</a></span></dt></dl></div>PROSE<h2 id=pit>Pitfalls with oars</h2>PROSE</div>",
        &["Table of Contents", "](https://x.test/docs/16/boats.html#pit"],
        &["Oars", "Pitfalls with oars"],
    );
}
