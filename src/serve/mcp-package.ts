/** Official TypeScript server of the Model Context Protocol: an optional package, loaded where a world is served by it. */
import { UserError } from '../core/errors.ts';

/** Package as it is loaded: servers, their handler of HTTP requests, and the one of standard input and output. */
export type ServerPackage = typeof import('@modelcontextprotocol/server') &
  Pick<typeof import('@modelcontextprotocol/server/stdio'), 'serveStdio' | 'StdioServerTransport'>;

/** Loads the package. @throws {UserError} MISSING_ENGINE where it is not installed */
export async function loadServerPackage(): Promise<ServerPackage> {
  try {
    const [server, { serveStdio, StdioServerTransport }] = await Promise.all([
      import('@modelcontextprotocol/server'),
      import('@modelcontextprotocol/server/stdio'),
    ]);
    return { ...server, serveStdio, StdioServerTransport };
  } catch (thrown) {
    const message =
      'serve-env: --mcp needs the package @modelcontextprotocol/server: npm install @modelcontextprotocol/server';
    throw new UserError('MISSING_ENGINE', message, { cause: thrown });
  }
}
