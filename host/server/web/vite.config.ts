import { defineConfig, loadEnv } from 'vite';

// Where a `belljar serve` runs while the page is worked on.
const server = loadEnv('', '.', 'BELLJAR_')['BELLJAR_URL'] ?? 'http://127.0.0.1:7411';

export default defineConfig({
  base: '/',
  appType: 'spa',
  build: {
    outDir: 'dist',
    assetsDir: 'assets',
    // Nothing is put into the page as a `data:` address, so that the policy stays narrow.
    assetsInlineLimit: 0,
    cssCodeSplit: true,
    sourcemap: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    target: 'es2022',
  },
  server: {
    host: '127.0.0.1',
    port: 5173,
    // The server takes requests under its own name only, so they come from its own origin.
    proxy: {
      '/v1': {
        target: server,
        changeOrigin: true,
        headers: { origin: server },
      },
    },
  },
});
