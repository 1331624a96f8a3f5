/** The shop of WebArena's sites: what each page shows, and what each form changes. */
import { describe, expect, it } from 'vitest';
import { ownOrders, ratingOf, reviewsOf, sortProducts } from '../../../envs/webarena/sites/shop.ts';
import { money } from '../../../envs/webarena/worlds/draw.ts';
import { cellsOf, linksOf, siteOf, textOf, WORLD } from '../../support/web-pages.ts';

const { shop } = WORLD;
/** Number of reviews of a product in a status. */
const reviewed = (id: number, status: string) =>
  shop.reviews.filter((one) => one.product === id && one.status === status).length;
/** A product with reviews that are shown and one that is not. */
const product = shop.products.find(({ id }) => reviewed(id, 'Approved') > 1 && reviewed(id, 'Pending') > 0)!;
const PRODUCT = `/product/${product.slug}`;

describe('the shop', () => {
  it('has a category for each sort of thing, and nothing where there is no page', () => {
    const site = siteOf('shopping');
    const links = linksOf(site.page('/'));
    for (const category of new Set(shop.products.map((one) => one.category)))
      expect(site.page(links.get(category)!).status).toBe(200);
    for (const path of ['/nowhere', '/category/none', '/product/none', '/account/none', '/account/order/1'])
      expect([path, site.page(path).status]).toEqual([path, 404]);
  });

  it('shows the products of a category ten to a page, each with price and rating', () => {
    const site = siteOf('shopping');
    const inside = shop.products.filter(({ category }) => category === 'Kitchen');
    const seen: string[] = [];
    for (let page = 1; page <= Math.ceil(inside.length / 10); page++) {
      const names = [...linksOf(site.page(`/category/kitchen?page=${page}`)).keys()];
      seen.push(...names.filter((name) => inside.some((one) => one.name === name)));
    }
    expect(seen).toEqual(inside.map(({ name }) => name));
    const first = inside[0]!;
    expect(site.text('/category/kitchen')).toContain(`cell '${money(first.price)}'`);
    expect(site.text('/category/kitchen')).toContain(`${inside.length} found, page 1 of `);
  });

  it.each(['Price ascending', 'Price descending', 'Name', 'Rating'])('sorts by %s', (by) => {
    const inside = shop.products.filter(({ category }) => category === 'Audio');
    const sorted = sortProducts(shop, inside, by);
    expect([...sorted].sort((a, b) => a.id - b.id)).toEqual(inside);
    const key = (one: (typeof inside)[number]) =>
      by === 'Name'
        ? one.name
        : by === 'Rating'
          ? -(Number(ratingOf(shop, one)) || 0)
          : by === 'Price ascending'
            ? one.price
            : -one.price;
    for (let i = 1; i < sorted.length; i++) expect(key(sorted[i - 1]!) <= key(sorted[i]!)).toBe(true);
    const shown = [...linksOf(siteOf('shopping').page(`/category/audio?sort=${by}`)).keys()];
    expect(shown).toContain(sorted[0]!.name);
    expect(sortProducts(shop, inside, 'nothing')).toEqual(inside);
  });

  it('leaves out what costs more, and what has no reviews', () => {
    const page = siteOf('shopping').page('/category/kitchen?max=100&reviewed=on');
    const names = new Set(linksOf(page).keys());
    for (const one of shop.products.filter(({ category }) => category === 'Kitchen'))
      if (names.has(one.name)) {
        expect(one.price).toBeLessThanOrEqual(10_000);
        expect(reviewsOf(shop, one).length).toBeGreaterThan(0);
      }
    expect(textOf(page)).toMatch(/'\d+ found/);
  });

  it('finds products by every word of name or SKU', () => {
    const site = siteOf('shopping');
    const found = (query: string) => [...linksOf(site.page(`/search?q=${encodeURIComponent(query)}`)).keys()];
    expect(found(product.name)).toContain(product.name);
    expect(found(product.sku.toLowerCase())).toContain(product.name);
    expect(site.text('/search?q=zzzz')).toContain("'0 found, page 1 of 1'");
    expect(site.text('/search?q=')).toContain('Results for nothing');
  });
});

describe('a product', () => {
  it('shows price, SKU, rating, category and how many reviews it has', () => {
    const text = siteOf('shopping').text(PRODUCT);
    for (const shown of [money(product.price), product.sku, ratingOf(shop, product), product.category])
      expect(text).toContain(`'${shown}'`);
    expect(text).toContain(`link 'Reviews (${reviewed(product.id, 'Approved')})'`);
    expect(text).not.toContain(String(product.stock));
  });

  it('has the mean of its approved reviews as its rating', () => {
    const stars = shop.reviews
      .filter((one) => one.product === product.id && one.status === 'Approved')
      .map((one) => one.stars);
    expect(ratingOf(shop, product)).toBe((stars.reduce((sum, n) => sum + n, 0) / stars.length).toFixed(1));
    expect(ratingOf({ ...shop, reviews: [] }, product)).toBe('none');
  });

  it('shows approved reviews, and one of your own as waiting', () => {
    const site = siteOf('shopping');
    const pending = shop.reviews.find(({ status }) => status === 'Pending')!;
    const of = shop.products[pending.product]!;
    expect(site.text(`/product/${of.slug}/reviews`)).not.toContain(`Waiting for approval`);
    expect(site.send(`${PRODUCT}/reviews`, { stars: '4', text: ' Good\nthing ' })).toBe(`${PRODUCT}/reviews`);
    expect(site.changes).toEqual({ [`shop/review/${product.slug}/1`]: '4 stars: Good thing' });
    expect(site.text(`${PRODUCT}/reviews`)).toContain('Waiting for approval: 4 stars: Good thing');
    site.send(`${PRODUCT}/reviews`, { stars: '1', text: '   ' });
    expect(Object.keys(site.changes)).toHaveLength(1);
  });
});

describe('the cart', () => {
  const [option] = product.options;
  const key = `shop/cart/${product.slug}|${option}`;

  it('takes a product, adds to it, and shows the total', () => {
    const site = siteOf('shopping');
    const to = site.send('/cart/add', { product: product.slug, option: option!, quantity: '2' });
    expect(to).toBe(`${PRODUCT}?added=cart`);
    expect(site.text(to)).toContain('Added to your cart.');
    site.send('/cart/add', { product: product.slug, option: option!, quantity: '3' });
    expect(site.changes).toEqual({ [key]: '5' });
    expect(site.text('/cart')).toContain(money(5 * product.price));
  });

  it.each(['0', '-1', '1.5', '100', 'two', ''])('takes no quantity of "%s"', (quantity) => {
    const site = siteOf('shopping');
    expect(site.send('/cart/add', { product: product.slug, option: option!, quantity })).toBe(PRODUCT);
    expect(site.changes).toEqual({});
  });

  it('holds 99 of a product at most, and the first option where none is named', () => {
    const site = siteOf('shopping');
    for (let i = 0; i < 3; i++) site.send('/cart/add', { product: product.slug, option: 'none', quantity: '60' });
    expect(site.changes).toEqual({ [key]: '99' });
  });

  it('is emptied at once', () => {
    const site = siteOf('shopping');
    site.send('/cart/add', { product: product.slug, quantity: '1' });
    site.send('/account/wishlist/add', { product: product.slug });
    expect(site.send('/cart/clear')).toBe('/cart');
    expect(Object.keys(site.changes)).toEqual([`shop/wishlist/${product.slug}`]);
  });

  it('is ordered with a way of shipping, which empties it', () => {
    const site = siteOf('shopping');
    expect(site.text('/checkout')).toContain('There is nothing to order.');
    expect(site.send('/checkout', { shipping: 'Express' })).toBe('/checkout');
    site.send('/cart/add', { product: product.slug, option: option!, quantity: '2' });
    expect(site.text('/checkout')).toContain('1 products');
    expect(site.send('/checkout', { shipping: 'Express' })).toBe('/account');
    expect(site.changes).toEqual({ 'shop/order/1': `${product.slug}|${option}|2 by Express` });
  });

  it('of an unknown product changes nothing', () => {
    const site = siteOf('shopping');
    expect(site.send('/cart/add', { product: 'none', quantity: '1' })).toBe('/cart/add');
    expect(site.changes).toEqual({});
  });
});

describe('the account', () => {
  const me = shop.customers[0]!;

  it('shows the customer, and the orders newest first', () => {
    const site = siteOf('shopping');
    expect(site.text('/account')).toContain(me.email);
    const orders = ownOrders(shop);
    expect(orders.every((one, i) => i === 0 || orders[i - 1]!.date >= one.date)).toBe(true);
    const numbers = [...linksOf(site.page('/account/orders')).keys()].filter((text) => /^\d{9}$/.test(text));
    expect(numbers).toEqual(orders.slice(0, 10).map(({ number }) => number));
  });

  it('shows an order of the customer’s own, and no one else’s', () => {
    const site = siteOf('shopping');
    const own = ownOrders(shop)[0]!;
    const text = site.text(`/account/order/${own.number}`);
    for (const shown of [own.date, own.status, money(own.total)]) expect(text).toContain(`'${shown}'`);
    expect(own.total).toBe(
      own.items.reduce((sum, { product: id, quantity }) => sum + quantity * shop.products[id]!.price, 0),
    );
    const other = shop.orders.find(({ customer }) => customer !== 0)!;
    expect(site.page(`/account/order/${other.number}`).status).toBe(404);
  });

  it('keeps a wish list', () => {
    const site = siteOf('shopping');
    expect(site.text('/account/wishlist')).toContain('Your wish list is empty.');
    expect(site.send('/account/wishlist/add', { product: product.slug })).toBe(`${PRODUCT}?added=wishlist`);
    expect(linksOf(site.page('/account/wishlist')).get(product.name)).toBe(PRODUCT);
  });

  it('keeps an address; what is set to what it was is no change', () => {
    const site = siteOf('shopping');
    const old = { street: '12 Quay Street', city: 'Northport', postcode: '10117' };
    expect(site.send('/account/address', { ...old, city: 'Ashford' })).toBe('/account/address?saved=1');
    expect(site.changes).toEqual({ 'shop/address/city': 'Ashford' });
    expect(site.text('/account/address')).toContain("StaticText 'Ashford'");
    site.send('/account/address', old);
    expect(site.changes).toEqual({});
  });

  it('subscribes to the newsletter and off it', () => {
    const site = siteOf('shopping');
    site.send('/account/newsletter', { on: 'on' });
    expect(site.text('/account/newsletter')).toContain('You are subscribed.');
    expect(cellsOf(site.page('/account/newsletter'), 'checkbox')).toMatchObject([{ checked: true }]);
    site.send('/account/newsletter');
    expect(site.changes).toEqual({});
  });

  it('keeps a draft to the shop', () => {
    const site = siteOf('shopping');
    expect(site.send('/contact', { order: '000001234', reason: 'Refund', message: 'Late' })).toBe('/contact?saved=1');
    expect(site.changes).toEqual({
      'shop/contact/order': '000001234',
      'shop/contact/reason': 'Refund',
      'shop/contact/message': 'Late',
    });
    expect(site.text('/contact?saved=1')).toContain('Your draft was saved.');
    expect(cellsOf(site.page('/contact'), 'select')).toMatchObject([{ value: 'Refund' }]);
  });
});
