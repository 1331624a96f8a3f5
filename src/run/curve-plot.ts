/** Learning curves as a small SVG: lines with bands, readable in light and dark. */
import { largestOf } from '../core/extremes.ts';

export interface Curve {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number; readonly low: number; readonly high: number }[];
}

export interface Plot {
  readonly title: string;
  readonly x: string;
  /** In [0, 1]; shown in per cent. */
  readonly y: string;
  readonly curves: readonly Curve[];
}

const WIDTH = 720;
const HEIGHT = 400;
const LEFT = 56;
const RIGHT = 150;
const TOP = 40;
const BOTTOM = 48;
/** Okabe and Ito's palette: colour-blind eyes distinguish it too. */
const COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7'];

export function plotCurves({ title, x, y, curves }: Plot): string {
  const max = largestOf(curves.flatMap(({ points }) => points.map((point) => point.x)));
  const px = (value: number) => LEFT + (value / max) * (WIDTH - LEFT - RIGHT);
  const py = (value: number) => HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM);
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (value) =>
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${py(value)}" y2="${py(value)}" stroke="#8884"/>` +
      `<text x="${LEFT - 8}" y="${py(value) + 4}" text-anchor="end">${value * 100} %</text>`,
  );
  const ticks = [0, 0.5, 1].map(
    (share) =>
      `<text x="${px(share * max)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${short(share * max)}</text>`,
  );
  const labelAt = spread(curves.map(({ points }) => py(points.at(-1)?.y ?? 0)));
  const lines = curves.map(({ name, points }, i) => {
    const color = COLORS[i % COLORS.length]!;
    const band = [
      ...points.map((p) => `${px(p.x)},${py(p.high)}`),
      ...points.toReversed().map((p) => `${px(p.x)},${py(p.low)}`),
    ];
    return (
      `<polygon points="${band.join(' ')}" fill="${color}" opacity="0.15"/>` +
      `<polyline points="${points.map((p) => `${px(p.x)},${py(p.y)}`).join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>` +
      `<text x="${WIDTH - RIGHT + 8}" y="${labelAt[i]! + 4}" fill="${color}">${escapeText(name)}</text>`
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" role="img" aria-label="${escapeText(title)}">
<rect width="100%" height="100%" fill="#fff"/>
<text x="${LEFT}" y="22" font-size="15">${escapeText(title)}</text>
${grid.join('\n')}
${ticks.join('\n')}
<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">${escapeText(x)}</text>
<text x="14" y="${(TOP + HEIGHT - BOTTOM) / 2}" transform="rotate(-90 14 ${(TOP + HEIGHT - BOTTOM) / 2})" text-anchor="middle">${escapeText(y)}</text>
${lines.join('\n')}
</svg>
`;
}

/** `300k`, `12.5M` */
function short(count: number): string {
  return count >= 1e6 ? `${(count / 1e6).toFixed(1)}M` : `${Math.round(count / 1000)}k`;
}

/** Moves label positions apart, in their order, so that none covers another. */
function spread(at: readonly number[]): number[] {
  const order = at.map((_, i) => i).sort((a, b) => at[a]! - at[b]!);
  const moved = [...at];
  for (let n = 1; n < order.length; n++) {
    moved[order[n]!] = Math.max(moved[order[n]!]!, moved[order[n - 1]!]! + 15);
  }
  return moved;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
