// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/discovery"
)

// zonesFlags are the flags of zones.
type zonesFlags struct {
	region   string
	networks []string
	policies bool
	identity string
}

func (p *program) zonesCommand() *cobra.Command {
	var f zonesFlags
	c := &cobra.Command{
		Use:   "zones --region REGION",
		Short: "Propose failure domains from existing VDCs",
		Long: `Prints manifests of a VCDFailureDomain and a VCDDeploymentZone for each enabled VDC that is visible to the user, to
edit and apply. The command is read-only. With --policies, it also prints them for each VM placement policy of a VDC,
which selects a part of its hosts: keep either the VDC or its policies.

The zones refer to the identity of the login; with --config or the environment, to that of --identity-ref.`,
		Example: strings.ReplaceAll(`  # with an identity of the management cluster
  vcdctl zones --region frankfurt --identity tenant --org acme -n team-a --network nodes > zones.yaml

  # with credentials from the environment
  vcdctl zones --region frankfurt --identity-ref tenant`, "vcdctl", p.name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.zones(c.Context(), f) },
	}
	c.Flags().StringVar(&f.region, "region", "", "Region of the zones: the value of topology.kubernetes.io/region.")
	c.Flags().StringSliceVar(&f.networks, "network", nil,
		"Default networks of machines, in the order of their NICs; those of the cluster if not set.")
	c.Flags().BoolVar(&f.policies, "policies", false, "Also propose a zone for each placement policy.")
	c.Flags().StringVar(&f.identity, "identity-ref", "",
		"VCDIdentity of the zones; that of --identity if not set.")
	_ = c.MarkFlagRequired("region")
	return c
}

func (p *program) zones(ctx context.Context, f zonesFlags) error {
	ref, err := p.zonesIdentity(f)
	if err != nil {
		return err
	}
	config, err := p.resolve(ctx, request{})
	if err != nil {
		return err
	}
	session, logout, err := login(ctx, config)
	if err != nil {
		return err
	}
	defer logout()
	objects, err := discovery.Zones(ctx, session.VDCs, discovery.ZoneOptions{
		Namespace:   p.access.namespace,
		Site:        strings.TrimRight(config.Site, "/"),
		Org:         config.Org,
		Region:      f.region,
		IdentityRef: ref,
		Networks:    f.networks,
		Policies:    f.policies,
	})
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		fmt.Fprintln(p.errors,
			"No enabled VDC is visible to the user: ask the provider to enable or share one.")
		return errFindings
	}
	return p.printManifests(objects)
}

// zonesIdentity returns the identity for the deployment zones.
func (p *program) zonesIdentity(f zonesFlags) (infrav1.IdentityReference, error) {
	ref, err := p.access.identityRef()
	if err != nil {
		return ref, err
	}
	if f.identity != "" {
		ref = infrav1.IdentityReference{Kind: infrav1.NamespacedIdentity}
	}
	if ref.Name = cmp.Or(f.identity, ref.Name); ref.Name == "" {
		return ref, errors.New("zones require an identity: set --identity, --cluster-identity or --identity-ref")
	}
	return ref, nil
}

// printManifests prints objects for kubectl apply, as YAML or as a JSON list.
func (p *program) printManifests(objects []client.Object) error {
	if p.output == "json" {
		return p.printJSON(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}
	manifests, err := discovery.YAML(objects)
	if err != nil {
		return err
	}
	_, err = p.out.Write(manifests)
	return err
}
