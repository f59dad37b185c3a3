// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/audit"
)

const lists = "lists are the fallback for API servers without streaming lists"

// allowedUnusedRights are the rights that these tests do not have to use, with the reasons why the manager has them.
var allowedUnusedRights = []audit.Allowance{
	{
		Verbs:     []string{"list"},
		Resources: []string{"secrets", "namespaces"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "apiextensions.k8s.io",
		Resources: []string{"customresourcedefinitions"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "cluster.x-k8s.io",
		Resources: []string{"clusters", "machines"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "addons.cluster.x-k8s.io",
		Resources: []string{"clusterresourcesets"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "ipam.cluster.x-k8s.io",
		Resources: []string{"ipaddressclaims", "ipaddresses"},
		Why:       lists,
	},
	{
		Verbs: []string{"list"},
		Group: "infrastructure.cluster.x-k8s.io",
		Resources: []string{
			"vcdclusters", "vcdmachines", "vcdmachinetemplates", "vcdidentities",
			"vcdclusteridentities",
		},
		Why: lists,
	},
	{
		Verbs:     []string{"create"},
		Group:     "infrastructure.cluster.x-k8s.io",
		Resources: []string{"vcdidentities"},
		Why:       "the upgrade from CAPVCD moves its credentials to a VCDIdentity: TestUpgradeFromCAPVCD in test/capvcd",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "ipam.cluster.x-k8s.io",
		Resources: []string{"ipaddressclaims"},
		Why:       "claims are adopted after a restore from a backup: TestAClaimSurvivesAMove in controllers/internal/ipam",
	},
	{
		Verbs:     []string{"watch"},
		Resources: []string{"namespaces"},
		Why:       "needed only by identities that select namespaces by label: TestADisallowedNamespaceIsCheckedAgain in controllers",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "events.k8s.io",
		Resources: []string{"events"},
		Why:       "an event that repeats within minutes becomes a series",
	},
	{
		Verbs:     []string{"patch"},
		Resources: []string{"events"},
		Why:       "an event of leader election repeats if a manager becomes the leader again",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "apiextensions.k8s.io",
		Resources: []string{"customresourcedefinitions/status"},
		Why:       "Cluster API's migrator, after a release that changes the stored version",
	},
	{
		Verbs: []string{"get", "list"},
		Group: "infrastructure.cluster.x-k8s.io",
		Resources: []string{
			"vcdclustertemplates", "vcdmachinetemplates", "vcdfailuredomains", "vcddeploymentzones", "vcdremediations",
			"vcdremediationtemplates",
		},
		Why: "Cluster API's migrator, after a release that changes the stored version",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "infrastructure.cluster.x-k8s.io",
		Resources: []string{"vcdclustertemplates", "vcdmachinetemplates", "vcdremediationtemplates"},
		Why:       "Cluster API's migrator, after a release that changes the stored version",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "infrastructure.cluster.x-k8s.io",
		Resources: []string{"vcdclusteridentities", "vcdclusteridentities/status"},
		Why:       "their controller is tested in controllers",
	},
	{
		Verbs:     []string{"list"},
		Group:     "cluster.x-k8s.io",
		Resources: []string{"machinedeployments"},
		Why:       "shown in the runtime defined entities of clusters, which are tested in controllers/rde",
	},
	{
		Verbs:     []string{"get"},
		Group:     "controlplane.cluster.x-k8s.io",
		Resources: []string{"kubeadmcontrolplanes"},
		Why:       "shown in the runtime defined entities of clusters, which are tested in controllers/rde",
	},
	{
		Verbs: []string{"update"},
		Group: "infrastructure.cluster.x-k8s.io",
		Resources: []string{
			"vcdclusters/finalizers", "vcdmachines/finalizers", "vcdidentities/finalizers",
			"vcdclusteridentities/finalizers",
		},
		Why: "checked by the admission plugin OwnerReferencesPermissionEnforcement, which is enabled here, for blockOwnerDeletion; such checks are not in the audit log",
	},
}

// auditRights compares the requests of the manager with its shipped role, and returns the exit code. It fails if a
// request was denied. If all tests ran, it also fails if a right is unused without a reason in allowedUnusedRights.
func auditRights(code int) int {
	requests, err := readAudit(shared.AuditLog())
	if err != nil {
		return report(err)
	}
	rights, err := shippedRights(shared.Components)
	if err != nil {
		return report(err)
	}
	found := audit.Compare(requests, "system:serviceaccount:"+framework.Namespace+":capvcd-manager", rights)
	for _, denied := range found.Denied {
		code = report(fmt.Errorf("the manager may not %s", denied))
	}
	if code != 0 || !allTestsRan() {
		return code
	}
	left, stale := audit.Excuse(found.Unused, rights, allowedUnusedRights)
	for _, right := range left {
		code = report(fmt.Errorf(
			"the right to %s was not used: remove it, use it in a test, or explain it in allowedUnusedRights", right))
	}
	for _, a := range stale {
		code = report(fmt.Errorf("allowedUnusedRights excuses %v %v of %q, which is not granted", a.Verbs, a.Resources,
			a.Group))
	}
	fmt.Fprintf(os.Stderr,
		"The manager made %d requests to the API server; %d rights, none denied, %d unused for a reason\n",
		found.Requests, len(rights), len(found.Unused)-len(left))
	return code
}

// allTestsRan reports whether no flag selected tests.
func allTestsRan() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
}

func readAudit(path string) ([]audit.Request, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	return audit.Read(log)
}

// shippedRights returns the rights of the manager's ClusterRole and Role in the components.
func shippedRights(components []byte) ([]audit.Right, error) {
	var rights []audit.Right
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(components), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return rights, nil
		}
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(object.GetKind(), "Role") || isForUsers(object) {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return nil, err
		}
		more, err := audit.RightsOf(role.Rules)
		if err != nil {
			return nil, err
		}
		rights = append(rights, more...)
	}
}

// isForUsers reports whether a role is aggregated to built-in roles for users.
func isForUsers(role *unstructured.Unstructured) bool {
	for label := range role.GetLabels() {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	return false
}
