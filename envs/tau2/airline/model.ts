/** Database of the airline: flights by date, users, reservations. */
import * as kind from '../python/model.ts';
import { ModelType } from '../python/model.ts';
import type { Model, PyValue, Table } from '../python/values.ts';

/** Flight on a date; an available one has seats and prices by cabin. */
export interface FlightDate extends Model {
  status: string;
}
export interface AvailableDate extends FlightDate {
  status: 'available';
  available_seats: Map<string, bigint>;
  prices: Map<string, bigint>;
}
export interface Flight extends Model {
  flight_number: string;
  origin: string;
  destination: string;
  scheduled_departure_time_est: string;
  scheduled_arrival_time_est: string;
  dates: Map<string, FlightDate>;
}
export interface DirectFlight extends Model {
  destination: string;
  date: PyValue;
  scheduled_arrival_time_est: string;
}
export interface FlightInfo extends Model {
  flight_number: string;
  date: string;
}
export interface ReservationFlight extends FlightInfo {
  price: bigint;
}
export interface Passenger extends Model {
  first_name: string;
  last_name: string;
  dob: string;
}
export interface Payment extends Model {
  payment_id: string;
  amount: bigint;
}
export interface PaymentMethod extends Model {
  source: 'credit_card' | 'gift_card' | 'certificate';
  id: string;
}
/** Method of payment with an amount that is used up. */
export interface Balance extends PaymentMethod {
  source: 'gift_card' | 'certificate';
  amount: number;
}
export interface User extends Model {
  user_id: string;
  payment_methods: Map<string, PaymentMethod>;
  reservations: string[];
}
/** Reservation; fields that a tool assigns hold whatever it was called with. */
export interface Reservation extends Model {
  reservation_id: string;
  user_id: string;
  cabin: PyValue;
  flights: ReservationFlight[];
  passengers: Model[];
  payment_history: Payment[];
  total_baggages: PyValue;
  nonfree_baggages: PyValue;
  insurance: string;
  status: string | null;
}
export interface Airline extends Model {
  flights: Table<Flight>;
  users: Table<User>;
  reservations: Table<Reservation>;
}

const CABINS = ['business', 'economy', 'basic_economy'];
const byCabin = kind.dictOf(kind.int);

export const airport = new ModelType('AirportCode', { iata: kind.text, city: kind.text });
const name = new ModelType('Name', { first_name: kind.text, last_name: kind.text });
const address = new ModelType('Address', {
  address1: kind.text,
  address2: kind.optional(kind.text),
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
const giftCard = new ModelType('GiftCard', { source: kind.literal(['gift_card']), id: kind.text, amount: kind.float });
export const certificate = new ModelType('Certificate', {
  source: kind.literal(['certificate']),
  id: kind.text,
  amount: kind.float,
});
export const payment = new ModelType('Payment', { payment_id: kind.text, amount: kind.int });
export const passenger = new ModelType('Passenger', { first_name: kind.text, last_name: kind.text, dob: kind.text });
const user = new ModelType('User', {
  user_id: kind.text,
  name: name.read,
  address: address.read,
  email: kind.text,
  dob: kind.text,
  payment_methods: kind.dictOf(kind.oneOf('source', { credit_card: creditCard, gift_card: giftCard, certificate })),
  saved_passengers: kind.listOf(passenger.read),
  membership: kind.literal(['gold', 'silver', 'regular']),
  reservations: kind.listOf(kind.text),
});
const available = new ModelType('FlightDateStatusAvailable', {
  status: kind.literal(['available']),
  available_seats: byCabin,
  prices: byCabin,
});
const landed = new ModelType('FlightDataStatusLanded', {
  status: kind.literal(['landed']),
  actual_departure_time_est: kind.text,
  actual_arrival_time_est: kind.text,
});
const cancelled = new ModelType('FlightDateStatusCancelled', { status: kind.literal(['cancelled']) });
const delayed = new ModelType('FlightDateStatusDelayed', {
  status: kind.literal(['delayed']),
  estimated_departure_time_est: kind.text,
  estimated_arrival_time_est: kind.text,
});
const flying = new ModelType('FlightDataStatusFlying', {
  status: kind.literal(['flying']),
  actual_departure_time_est: kind.text,
  estimated_arrival_time_est: kind.text,
});
const onTime = new ModelType('FlightDateStatusOnTime', {
  status: kind.literal(['on time']),
  estimated_departure_time_est: kind.text,
  estimated_arrival_time_est: kind.text,
});
const flightBase = { flight_number: kind.text, origin: kind.text, destination: kind.text };
const flight = new ModelType('Flight', {
  ...flightBase,
  scheduled_departure_time_est: kind.text,
  scheduled_arrival_time_est: kind.text,
  dates: kind.dictOf(kind.oneOf('status', { available, landed, cancelled, delayed, flying, 'on time': onTime })),
});
export const directFlight = new ModelType('DirectFlight', {
  ...flightBase,
  status: kind.withDefault(kind.literal(['available']), () => 'available'),
  scheduled_departure_time_est: kind.text,
  scheduled_arrival_time_est: kind.text,
  date: kind.optional(kind.text),
  available_seats: byCabin,
  prices: byCabin,
});
export const reservationFlight = new ModelType('ReservationFlight', {
  ...flightBase,
  date: kind.text,
  price: kind.int,
});
export const flightInfo = new ModelType('FlightInfo', { flight_number: kind.text, date: kind.text });
export const reservation = new ModelType('Reservation', {
  reservation_id: kind.text,
  user_id: kind.text,
  origin: kind.text,
  destination: kind.text,
  flight_type: kind.literal(['round_trip', 'one_way']),
  cabin: kind.literal(CABINS),
  flights: kind.listOf(reservationFlight.read),
  passengers: kind.listOf(passenger.read),
  payment_history: kind.listOf(payment.read),
  created_at: kind.text,
  total_baggages: kind.int,
  nonfree_baggages: kind.int,
  insurance: kind.literal(['yes', 'no']),
  status: kind.optional(kind.literal(['cancelled'])),
});
export const airline = new ModelType('FlightDB', {
  flights: kind.tableOf(flight.read),
  users: kind.tableOf(user.read),
  reservations: kind.tableOf(reservation.read),
});
