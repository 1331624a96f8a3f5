/**
 * Turns on sites: a session that takes some has them alone until it gives them back; those that wait are served in
 * order.
 */
export class Turns {
  readonly #last = new Map<string, Promise<void>>();

  /** @returns gives the sites back; twice does no harm */
  async take(sites: readonly string[]): Promise<() => void> {
    const before = sites.map((site) => this.#last.get(site));
    let release: () => void = () => {};
    const held = new Promise<void>((done) => {
      release = done;
    });
    // All sites are queued for at once, so that two tasks over two sites cannot wait for each other.
    for (const site of sites) this.#last.set(site, held);
    await Promise.all(before);
    return release;
  }
}
