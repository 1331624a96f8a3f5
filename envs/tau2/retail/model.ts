/** Database of the shop: products, users, orders. */
import * as kind from '../python/model.ts';
import { ModelType } from '../python/model.ts';
import type { Model, PyValue, Table } from '../python/values.ts';

export interface Variant extends Model {
  item_id: string;
  options: Map<string, PyValue>;
  available: boolean;
  price: number;
}
export interface Product extends Model {
  name: string;
  product_id: string;
  variants: Map<string, Variant>;
}
export interface Address extends Model {
  address1: string;
  address2: string;
  city: string;
  country: string;
  state: string;
  zip: string;
}
export interface PaymentMethod extends Model {
  source: 'credit_card' | 'paypal' | 'gift_card';
  id: string;
}
export interface GiftCard extends PaymentMethod {
  source: 'gift_card';
  balance: number;
}
export interface User extends Model {
  user_id: string;
  name: Model & { first_name: string; last_name: string };
  address: Address;
  email: string;
  payment_methods: Map<string, PaymentMethod>;
  orders: string[];
}
export interface OrderItem extends Model {
  name: string;
  product_id: string;
  item_id: string;
  price: number;
  options: Map<string, PyValue>;
}
export interface Payment extends Model {
  transaction_type: 'payment' | 'refund';
  amount: number;
  payment_method_id: string;
}
/** Order; the fields that a tool assigns hold whatever it was called with. */
export interface Order extends Model {
  order_id: string;
  user_id: string;
  address: Address;
  items: OrderItem[];
  status: string;
  payment_history: Payment[];
  cancel_reason: PyValue;
  exchange_items: PyValue;
  exchange_new_items: PyValue;
  exchange_payment_method_id: PyValue;
  exchange_price_difference: PyValue;
  return_items: PyValue;
  return_payment_method_id: PyValue;
}
export interface Shop extends Model {
  products: Table<Product>;
  users: Table<User>;
  orders: Table<Order>;
}

const variant = new ModelType('Variant', {
  item_id: kind.text,
  options: kind.dictOf(kind.text),
  available: kind.bool,
  price: kind.float,
});
const product = new ModelType('Product', {
  name: kind.text,
  product_id: kind.text,
  variants: kind.dictOf(variant.read),
});
const userName = new ModelType('UserName', { first_name: kind.text, last_name: kind.text });
export const address = new ModelType('UserAddress', {
  address1: kind.text,
  address2: kind.text,
  city: kind.text,
  country: kind.text,
  state: kind.text,
  zip: kind.text,
});
const creditCard = new ModelType('CreditCard', {
  source: kind.literal(['credit_card']),
  id: kind.text,
  brand: kind.text,
  last_four: kind.text,
});
const paypal = new ModelType('Paypal', { source: kind.literal(['paypal']), id: kind.text });
const giftCard = new ModelType('GiftCard', {
  source: kind.literal(['gift_card']),
  id: kind.text,
  balance: kind.float,
});
const user = new ModelType('User', {
  user_id: kind.text,
  name: userName.read,
  address: address.read,
  email: kind.text,
  payment_methods: kind.dictOf(kind.oneOf('source', { credit_card: creditCard, paypal, gift_card: giftCard })),
  orders: kind.listOf(kind.text),
});
const orderItem = new ModelType('OrderItem', {
  name: kind.text,
  product_id: kind.text,
  item_id: kind.text,
  price: kind.float,
  options: kind.dictOf(kind.text),
});
const fulfillment = new ModelType('OrderFullfilment', {
  tracking_id: kind.listOf(kind.text),
  item_ids: kind.listOf(kind.text),
});
export const payment = new ModelType('OrderPayment', {
  transaction_type: kind.literal(['payment', 'refund']),
  amount: kind.float,
  payment_method_id: kind.text,
});
const order = new ModelType('Order', {
  order_id: kind.text,
  user_id: kind.text,
  address: address.read,
  items: kind.listOf(orderItem.read),
  status: kind.text,
  fulfillments: kind.listOf(fulfillment.read),
  payment_history: kind.listOf(payment.read),
  cancel_reason: kind.optional(kind.text),
  exchange_items: kind.optional(kind.listOf(kind.text)),
  exchange_new_items: kind.optional(kind.listOf(kind.text)),
  exchange_payment_method_id: kind.optional(kind.text),
  exchange_price_difference: kind.optional(kind.float),
  return_items: kind.optional(kind.listOf(kind.text)),
  return_payment_method_id: kind.optional(kind.text),
});
export const shop = new ModelType('RetailDB', {
  products: kind.tableOf(product.read),
  users: kind.tableOf(user.read),
  orders: kind.tableOf(order.read),
});
