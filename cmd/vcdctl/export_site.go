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
		Short: "Write an organization as a file that the simulator starts from",
		Long: `Reads the organization of a live site and writes a file that vcdsim --model loads: VDCs with their quotas and
storage policies, sizing and placement policies, networks with their ranges, edge gateways, load balancers, IP
Spaces, catalogs and the hardware of templates. It only reads.

The file has no names, ids, host names, users, credentials, descriptions or other free texts of the site. Names are
numbered (network-1), and addresses are moved to ranges that nothing real uses, with the same lengths of prefixes.
A version of Kubernetes in the name of a template stays. What the user may not read is listed on standard error.`,
		Example: strings.ReplaceAll(`  vcdctl export-site --file site.yaml --identity tenant --org acme
  vcdsim --model site.yaml`, "vcdctl", p.name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.exportSite(c.Context(), file) },
	}
	c.Flags().StringVar(&file, "file", "", "File to write, instead of standard output.")
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
