/**
 * Page of the viewer as one HTML document: styles, uPlot and our own script inline, nothing from elsewhere. A content
 * security policy names exactly these by their hashes, so nothing else on the page can run, whatever a trace contains.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { readText } from '../core/bounded-file.ts';
import { UserError } from '../core/errors.ts';
import { workerUrl } from '../runtime/module-url.ts';
import type { ReportData } from './api.ts';
import { STYLE } from './style.ts';

/** Modules of ours, in the order in which they are joined: each uses only names of itself and those before. */
const MODULES = [
  '../core/call-text',
  '../core/extremes',
  '../metrics/metric-table',
  'query',
  'search',
  'client/dom',
  'client/source',
  'client/plot',
  'client/curves',
  'client/evaluations',
  'client/drawing',
  'client/turn',
  'client/episode',
  'client/group',
  'client/search-hits',
  'client/list',
  'client/app',
];

let assets: { readonly script: string; readonly style: string } | undefined;
/** Page without data: always the same, and asked for by everybody. */
let served: string | undefined;

/**
 * HTML of the page.
 * @param data makes the page a report: it then needs no server
 */
export function pageHtml(data?: ReportData): string {
  if (data) return htmlOf(data);
  served ??= htmlOf(undefined);
  return served;
}

function htmlOf(data: ReportData | undefined): string {
  assets ??= { script: script(), style: style() };
  const { script: code, style: css } = assets;
  const policy = [
    `default-src 'none'`,
    `script-src 'sha256-${sha256(code)}'`,
    `style-src 'sha256-${sha256(css)}'`,
    `connect-src 'self'`,
    data ? `img-src data:` : `img-src 'self' data:`,
    `base-uri 'none'`,
    `form-action 'none'`,
  ].join('; ');
  const embedded = data ? `<script type="application/json" id="report">${escapeJson(data)}</script>\n` : '';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>longplay</title>
<link rel="icon" href="data:,">
<style>${css}</style>
</head>
<body>
<noscript>This page draws itself with its own script, which is turned off.</noscript>
<div id="app"></div>
${embedded}<script>${code}</script>
</body>
</html>
`;
}

/** Escapes JSON, so that it cannot end its script element and is still the same JSON. */
export function escapeJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function script(): string {
  const require = createRequire(import.meta.url);
  const uplot = readText(require.resolve('uplot/dist/uPlot.iife.min.js'));
  const own = MODULES.map((name) => moduleText(new URL(`./${name}.js`, import.meta.url))).join('\n');
  return `${uplot}\n(() => {\n'use strict';\n${own}\n})();\n`.replace(/<\/(script)/gi, '<\\/$1');
}

/** Text of a compiled module as a part of one script: its imports are the parts before it. */
function moduleText(url: URL): string {
  let text: string;
  try {
    text = readText(workerUrl(url));
  } catch {
    throw new UserError(
      'BAD_ARGUMENT',
      `the viewer's page is not built: ${url.pathname} is missing; run \`npm run build\``,
    );
  }
  return text
    .replace(/^import\b[^;]*;\n?/gm, '')
    .replace(/^export \{\};?\n?/gm, '')
    .replace(/^export (?=(async )?(function|const|let|class)\b)/gm, '')
    .replace(/^\/\/# sourceMappingURL=.*$/gm, '');
}

function style(): string {
  const require = createRequire(import.meta.url);
  const uplot = readText(require.resolve('uplot/dist/uPlot.min.css'));
  return `${uplot}\n${STYLE}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('base64');
}
