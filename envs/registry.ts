/** Worlds that this package ships: id → URL of its module. A module is loaded on first use. */
export const registry: Readonly<Record<string, URL>> = {
  textcraft: new URL('./textcraft/index.js', import.meta.url),
  babyai: new URL('./babyai/index.js', import.meta.url),
  sciworld: new URL('./sciworld/index.js', import.meta.url),
  searchqa: new URL('./searchqa/index.js', import.meta.url),
  webarena: new URL('./webarena/index.js', import.meta.url),
  tau2: new URL('./tau2/index.js', import.meta.url),
  terminal: new URL('./terminal/index.js', import.meta.url),
};
