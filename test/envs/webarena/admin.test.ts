/** The shop's back office: lists and their filters, and what may be changed of orders, products and reviews. */
import { describe, expect, it } from 'vitest';
import { bestsellers } from '../../../envs/webarena/sites/admin.ts';
import { money } from '../../../envs/webarena/worlds/draw.ts';
import { ORDER_STATUSES } from '../../../envs/webarena/worlds/shop.ts';
import { cellsOf, linksOf, siteOf, WORLD } from '../../support/web-pages.ts';

const { shop } = WORLD;
const office = () => siteOf('shopping_admin');
const order = shop.orders.find(({ status }) => status === 'Pending')!;
const ORDER = `/admin/order/${order.number}`;
const product = shop.products[17]!;
const PRODUCT = `/admin/product/${product.sku}`;
const pending = shop.reviews.find(({ status }) => status === 'Pending')!;

/** Numbers in a pager's text: found, page, pages. */
const found = (path: string, site = office()) => Number(/'(\d+) found, page/.exec(site.text(path))![1]);

describe('the back office', () => {
  it('has its sections in the menu', () => {
    const site = office();
    for (const [, href] of linksOf(site.page('/admin'))) expect([href, site.page(href).status]).toEqual([href, 200]);
    for (const path of [
      '/',
      '/shop',
      '/admin/none',
      '/admin/order/1',
      '/admin/product/none',
      '/admin/review/9999',
      '/admin/reports/none',
    ])
      expect([path, site.page(path).status]).toEqual([path, 404]);
  });
});

describe('orders', () => {
  it.each(ORDER_STATUSES)('are filtered by the status %s', (status) => {
    expect(found(`/admin/orders?status=${status}`)).toBe(shop.orders.filter((one) => one.status === status).length);
  });

  it('are filtered by customer and month, all at once', () => {
    const { name } = shop.customers[order.customer]!;
    const month = order.date.slice(0, 7);
    const expected = shop.orders.filter(
      (one) => shop.customers[one.customer]!.name === name && one.date.startsWith(month) && one.status === 'Pending',
    );
    expect(found(`/admin/orders?status=Pending&customer=${name.toUpperCase()}&month=${month}`)).toBe(expected.length);
    expect(found('/admin/orders')).toBe(shop.orders.length);
    expect(found('/admin/orders?month=1999-01')).toBe(0);
  });

  it('get another status, which filters see; their own is no change', () => {
    const site = office();
    const before = found('/admin/orders?status=Complete', site);
    expect(site.send(`${ORDER}/status`, { status: 'Complete' })).toBe(ORDER);
    expect(site.changes).toEqual({ [`admin/order/${order.number}/status`]: 'Complete' });
    expect(found('/admin/orders?status=Complete', site)).toBe(before + 1);
    expect(cellsOf(site.page(ORDER), 'select')).toMatchObject([{ value: 'Complete' }]);
    site.send(`${ORDER}/status`, { status: 'Lost' });
    expect(site.changes).toEqual({});
  });

  it('get comments, in their order', () => {
    const site = office();
    site.send(`${ORDER}/comment`, { text: 'first' });
    site.send(`${ORDER}/comment`, { text: '' });
    site.send(`${ORDER}/comment`, { text: 'second' });
    expect(Object.values(site.changes)).toEqual(['first', 'second']);
    expect(site.text(ORDER)).toMatch(/'first'[\s\S]*'second'/);
  });

  it('show what was bought', () => {
    const text = office().text(ORDER);
    expect(text).toContain(money(order.total));
    for (const { product: id } of order.items) expect(text).toContain(shop.products[id]!.name);
  });
});

describe('products', () => {
  it('are found by name or SKU', () => {
    const site = office();
    expect(linksOf(site.page(`/admin/products?q=${product.sku}`)).get(product.name)).toBe(PRODUCT);
    expect(linksOf(site.page(`/admin/products?q=${product.name.toUpperCase()}`)).get(product.name)).toBe(PRODUCT);
  });

  it('get another price and stock', () => {
    const site = office();
    expect(site.send(PRODUCT, { price: '12.5', stock: '7' })).toBe(`${PRODUCT}?saved=1`);
    expect(site.changes).toEqual({
      [`admin/product/${product.sku}/price`]: '1250',
      [`admin/product/${product.sku}/stock`]: '7',
    });
    expect(site.text(`/admin/products?q=${product.sku}`)).toContain('$12.50');
    site.send(PRODUCT, { price: (product.price / 100).toFixed(2), stock: String(product.stock) });
    expect(site.changes).toEqual({});
  });

  it.each([
    ['0', '1'],
    ['-5', '1'],
    ['dear', '1'],
    ['1e9', '1'],
    ['5', '-1'],
    ['5', '1.5'],
    ['5', 'many'],
  ])('get no price of "%s" with a stock of "%s"', (price, stock) => {
    const site = office();
    expect(site.send(PRODUCT, { price, stock })).toBe(PRODUCT);
    expect(site.changes).toEqual({});
  });

  it('lead to the shop in a tab of its own', () => {
    const links = cellsOf(office().page(PRODUCT), 'link').filter((cell) => 'blank' in cell && cell.blank);
    expect(links).toMatchObject([{ href: `http://shop.test/product/${product.slug}` }]);
  });
});

describe('reviews', () => {
  const REVIEW = `/admin/review/${pending.id}`;

  it('are filtered by status and words', () => {
    for (const status of ['Approved', 'Pending'])
      expect(found(`/admin/reviews?status=${status}`)).toBe(shop.reviews.filter((one) => one.status === status).length);
    const expected = shop.reviews.filter(({ text, author }) => `${text} ${author}`.toLowerCase().includes('durable'));
    expect(found('/admin/reviews?q=DURABLE')).toBe(expected.length);
  });

  it('are approved or deleted, and a deleted one is in no list', () => {
    const site = office();
    const all = found('/admin/reviews', site);
    site.send(REVIEW, { do: 'Approved' });
    expect(site.changes).toEqual({ [`admin/review/${pending.id}`]: 'Approved' });
    expect(cellsOf(site.page(REVIEW), 'button').map((cell) => 'text' in cell && cell.text)).toEqual(['Delete']);
    site.send(REVIEW, { do: 'Deleted' });
    expect(found('/admin/reviews', site)).toBe(all - 1);
    expect(cellsOf(site.page(REVIEW), 'button')).toEqual([]);
  });
});

describe('customers and reports', () => {
  it('find a customer by phone, email or name', () => {
    const who = shop.customers[9]!;
    for (const query of [who.phone, who.email, who.name.toUpperCase()]) {
      const site = office();
      expect(found(`/admin/customers?q=${query}`, site)).toBe(1);
      expect(site.text(`/admin/customers?q=${query}`)).toContain(who.email);
    }
  });

  it('count what was sold from month to month', () => {
    const sold = new Map<number, number>();
    for (const one of shop.orders)
      if (one.date >= '2023-01' && one.date < '2023-03')
        for (const { product: id, quantity } of one.items) sold.set(id, (sold.get(id) ?? 0) + quantity);
    const report = bestsellers(shop, '2023-01', '2023-02');
    expect(report).toHaveLength(sold.size);
    for (const { product: one, sold: amount } of report) expect(amount).toBe(sold.get(one.id));
    expect(report.every((one, i) => i === 0 || report[i - 1]!.sold >= one.sold)).toBe(true);
    const text = office().text('/admin/reports/bestsellers?from=2023-01&to=2023-02');
    expect(text).toContain(report[0]!.product.name);
  });

  it('want both months of a report', () => {
    for (const query of ['', '?from=2023-01', '?from=January&to=2023-02'])
      expect(office().text(`/admin/reports/bestsellers${query}`)).toContain('Give both months.');
  });

  it('list search terms by name, not by use', () => {
    const terms = cellsOf(office().page('/admin/reports/terms'), 'text').flatMap((cell) =>
      'text' in cell ? [cell.text] : [],
    );
    const shown = terms.filter((text) => shop.terms.some(({ term }) => term === text));
    expect(shown).toEqual([...shown].sort());
    expect(shown).toHaveLength(shop.terms.length);
  });
});
