/** The worlds this package ships: id → where its module lies. Modules are loaded only when asked for. */
export const registry: Readonly<Record<string, URL>> = {
  textcraft: new URL('./textcraft/index.js', import.meta.url),
  babyai: new URL('./babyai/index.js', import.meta.url),
  sciworld: new URL('./sciworld/index.js', import.meta.url),
  searchqa: new URL('./searchqa/index.js', import.meta.url),
  webarena: new URL('./webarena/index.js', import.meta.url),
};
