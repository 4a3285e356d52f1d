/** Whether the window is at least so wide, as it is now. */

import { useEffect, useState } from 'preact/hooks';

export function useWide(pixels: number): boolean {
  const query = `(min-width: ${pixels}px)`;
  const [wide, setWide] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const look = () => setWide(list.matches);
    look();
    list.addEventListener('change', look);
    return () => list.removeEventListener('change', look);
  }, [query]);
  return wide;
}
