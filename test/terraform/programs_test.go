// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/stack/programs"
)

// override is the environment variable with the path of a Terraform or OpenTofu to run instead of the built one.
const override = "TERRAFORM"

// Names of the programs, with their modules and folders.
const (
	providerName   = "terraform-provider-vcd"
	providerModule = "github.com/vmware/terraform-provider-vcd/v3"
	providerFolder = "provider"
	tofuName       = "tofu"
	tofuFolder     = "opentofu"
)

// tools contains the programs of the test.
type tools struct {
	cli      string // path of Terraform or OpenTofu
	provider string // folder of VMware's provider
}

// buildTools builds the programs that are not cached.
func buildTools(ctx context.Context) (tools, error) {
	here, err := filepath.Abs(".")
	if err != nil {
		return tools{}, err
	}
	groups := []programs.Group{{
		Name:     providerName,
		Folder:   filepath.Join(here, providerFolder),
		Ldflags:  "-s -w",
		Programs: []programs.Program{{Name: providerName, Package: providerModule}},
	}}
	cli := os.Getenv(override)
	if cli == "" {
		groups = append(groups, programs.Group{
			Name:     tofuName,
			Folder:   filepath.Join(here, tofuFolder),
			Ldflags:  "-s -w",
			Programs: []programs.Program{{Name: tofuName, Package: "github.com/opentofu/opentofu/cmd/tofu"}},
		})
	}
	set, err := programs.BuildGroups(ctx, programs.Options{Out: os.Stderr}, groups...)
	if err != nil {
		return tools{}, err
	}
	return tools{
		cli:      cmp.Or(cli, set.Bin(tofuName)),
		provider: filepath.Dir(set.Bin(providerName)),
	}, nil
}
