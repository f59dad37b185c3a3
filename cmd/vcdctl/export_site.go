// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteexport"
)

func (p *program) exportSiteCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "export-site",
		Short: "Export an organization for the simulator",
		Long: `Exports the organization of a live site to a file for vcdsim --model: VDCs with their quotas and storage policies,
sizing and placement policies, networks with their ranges, edge gateways, load balancers, IP Spaces, catalogs and
the hardware of templates. The command is read-only.

The file contains no names, IDs, host names, users, credentials, descriptions or other free text of the site. Names
are numbered (network-1), and addresses are mapped to reserved ranges with the same prefix lengths. The Kubernetes
version in a template name is kept. Objects that the user cannot read are listed on standard error.`,
		Example: strings.ReplaceAll(`  vcdctl export-site --file site.yaml --identity tenant --org acme
  vcdsim --model site.yaml`, "vcdctl", p.name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.exportSite(c.Context(), file) },
	}
	c.Flags().StringVar(&file, "file", "", "Output file; standard output if not set.")
	return c
}

func (p *program) exportSite(ctx context.Context, file string) error {
	session, logout, err := p.open(ctx, request{})
	if err != nil {
		return err
	}
	defer logout()
	export, err := siteexport.Read(ctx, session)
	if err != nil {
		return err
	}
	for _, note := range export.Notes {
		fmt.Fprintln(p.errors, "Note:", printable(note))
	}
	switch {
	case file != "":
		return writeExport(file, export)
	case p.output == "json":
		return p.printJSON(export.Model)
	}
	return export.Write(p.out)
}

func writeExport(path string, export siteexport.Export) error {
	var text strings.Builder
	if err := export.Write(&text); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing --file: %w", err)
	}
	return nil
}
