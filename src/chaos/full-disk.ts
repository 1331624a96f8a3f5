/** Full disk: a disk that is full while chaos injects that fault. */
import { type Disk, nodeDisk } from '../storage/atomic-file.ts';

/**
 * Makes a write function that fails.
 * @param writes the write that fails, 0 for the first; those before it succeed
 */
export function fullDisk(writes = 1, disk: Disk = nodeDisk): Disk {
  let left = writes;
  return {
    ...disk,
    write(path, content) {
      if (left-- > 0) return disk.write(path, content);
      throw Object.assign(new Error(`ENOSPC: no space left on device (injected), write '${path}'`), { code: 'ENOSPC' });
    },
  };
}
