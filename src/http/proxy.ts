/** Proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, and `NO_PROXY` for hosts that are reached directly. */
import type { Agent, AgentOptions } from 'node:http';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';
import { UserError } from '../core/errors.ts';
import { redact } from '../core/secrets.ts';

/** This machine is always reached directly. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/i;

/**
 * Makes an agent that connects through the proxy which the environment names for a URL.
 * @returns undefined where none is named
 * @throws {UserError} BAD_CONFIG for a proxy that is no http or https URL
 */
export function openProxyAgent(url: URL, options: AgentOptions): Agent | undefined {
  const proxy = LOOPBACK.test(url.hostname) ? '' : getProxyForUrl(url.href);
  if (proxy === '') return undefined;
  if (!/^https?:\/\/[^/]/.test(proxy) || !URL.canParse(proxy)) {
    throw new UserError(
      'BAD_CONFIG',
      `the environment's proxy for ${url.host} is '${redact(proxy)}': expected http://host:port or https://host:port; set it anew, or name the host in NO_PROXY`,
    );
  }
  return url.protocol === 'https:' ? new HttpsProxyAgent(proxy, options) : new HttpProxyAgent(proxy, options);
}
