"""Drives one session as users do: Playwright for Python, unmodified, through its cdpUrl. Says what passed.

    CDP_URL=ws://… SITE_URL=http://… python outside.py      closes with "N passed, N failed"
"""
import asyncio
import os
import sys
import traceback

from playwright.async_api import async_playwright

SITE = os.environ["SITE_URL"]
passed = failed = 0


async def check(name, body):
    global passed, failed
    try:
        await asyncio.wait_for(body, 120)
        passed += 1
        print(f"ok   {name}")
    except Exception:
        failed += 1
        print(f"FAIL {name}: {traceback.format_exc()}")


async def log_in(page):
    await page.goto(f"{SITE}/login")
    await page.fill("#user", "alice")
    await page.type("#password", "wonderland")
    await page.click("[type=submit]")
    await page.wait_for_url("**/account")
    assert "alice" in (await page.text_content("body")).lower()


async def cookies(page):
    names = [cookie["name"] for cookie in await page.context.cookies()]
    assert names, "the login's cookie is there"
    await page.context.add_cookies([{"name": "mine", "value": "1", "url": SITE}])
    assert "mine=1" in await page.evaluate("document.cookie")


async def upload_and_download(page):
    await page.goto(f"{SITE}/small/1")
    await page.set_content("<input type=file id=f><a id=d download=report.txt href='data:text/plain,the report'>get</a>")
    await page.set_input_files("#f", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"from memory"})
    assert await page.evaluate("document.querySelector('#f').files[0].text()") == "from memory"
    async with page.expect_download() as started:
        await page.click("#d")
    assert (await started.value).suggested_filename == "report.txt"


async def pictures_and_tabs(page):
    await page.goto(f"{SITE}/small/2")
    await page.set_content("<div style='height:5000px;background:linear-gradient(red,blue)'>tall</div>")
    shot = await page.screenshot(full_page=True)
    assert shot[:4] == b"\x89PNG" and int.from_bytes(shot[20:24], "big") >= 5000
    other = await page.context.new_page()
    await other.goto(f"{SITE}/small/3")
    assert other in page.context.pages and page in page.context.pages
    await other.close()


async def console_and_network(page):
    said, answered = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("response", lambda response: answered.append(response.url))
    await page.goto(f"{SITE}/small/4")
    await page.evaluate("console.log('from the page')")
    for _ in range(600):
        if said:
            break
        await page.wait_for_timeout(100)
    assert said == ["from the page"] and f"{SITE}/small/4" in answered, (said, answered)


async def main():
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(os.environ["CDP_URL"])
        page = await browser.contexts[0].new_page()
        for name, body in [("navigate, click, type, read", log_in), ("cookies", cookies), ("upload, download", upload_and_download),
                           ("full-page screenshot, tabs", pictures_and_tabs), ("console and network events", console_and_network)]:
            await check(name, body(page))
        await page.close()
        await browser.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(asyncio.run(main()))
