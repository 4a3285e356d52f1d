/** A table that says what it shows, and folds to cards where it is narrow. */

import type { ComponentChildren } from 'preact';

/** A column. */
export interface Column<Row> {
  key: string;
  head: ComponentChildren;
  /** The cell. */
  cell: (row: Row) => ComponentChildren;
  /** Numbers stand on the right. */
  right?: boolean;
  /** The cell names the row. */
  names?: boolean;
}

export function Table<Row>(props: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  id: (row: Row) => string;
  /** The caption is seen, not only read aloud. */
  titled?: boolean;
  class?: string;
}) {
  const { caption, columns, rows, id, titled = false } = props;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={caption}>
      <table class={props.class}>
        <caption class={titled ? '' : 'sr-only'}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" class={column.right ? 'right' : undefined}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {columns.map((column) =>
                column.names ? (
                  <th key={column.key} scope="row" class={column.right ? 'right' : undefined}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.key} class={column.right ? 'right' : undefined}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
