/** Sampling settings of a request, which all dialects name alike. */
import type { AskedSampling } from '../../core/model-call.ts';
import { type Fields, isAbsent, readInteger, readNumber, refuseValue } from './read-fields.ts';

/** Reads the settings that are there. A `top_k` of 0 or -1 means none. @throws {RefusedCall} */
export function readSampling(request: Fields): AskedSampling {
  const temperature = readNumber(request.temperature, 'temperature', 0, 100);
  const topP = readNumber(request.top_p, 'top_p', 0, 1);
  const topK = readInteger(request.top_k, 'top_k', -1);
  const minP = readNumber(request.min_p, 'min_p', 0, 1);
  const repetitionPenalty = readNumber(request.repetition_penalty, 'repetition_penalty', 0.01, 100);
  const presencePenalty = readNumber(request.presence_penalty, 'presence_penalty', -2, 2);
  const frequencyPenalty = readNumber(request.frequency_penalty, 'frequency_penalty', -2, 2);
  const { seed } = request;
  if (!isAbsent(seed) && !Number.isInteger(seed)) throw refuseValue('seed', 'a whole number', seed);
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined || topK <= 0 ? {} : { topK }),
    ...(minP === undefined ? {} : { minP }),
    ...(repetitionPenalty === undefined ? {} : { repetitionPenalty }),
    ...(presencePenalty === undefined ? {} : { presencePenalty }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty }),
    ...(isAbsent(seed) ? {} : { seed: seed as number }),
  };
}
