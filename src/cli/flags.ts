/** Flag parsers, and the wait for the signal that ends a server. */
import { InvalidArgumentError } from 'commander';

/** Parser of whole numbers of at least `least`. */
export function wholeNumber(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= least) return value;
    throw new InvalidArgumentError(`expected a whole number of at least ${least}.`);
  };
}

/** Parser of numbers of at least `least`. */
export function number(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isFinite(value) && value >= least) return value;
    throw new InvalidArgumentError(`expected a number of at least ${least}.`);
  };
}

/** Resolves at SIGINT or SIGTERM; a second signal ends the process at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let seen = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (seen) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
      seen = true;
      resolve(signal);
    };
    process.on('SIGINT', onSignal);
    process.on('SIGTERM', onSignal);
  });
}
