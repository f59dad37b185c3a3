// SPDX-License-Identifier: Apache-2.0

package cloudstack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	cpicloudstack "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/cloudstack"
)

func TestKeysAreReread(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	path := filepath.Join(t.TempDir(), "cloud-config")
	write := func(text string) {
		now = now.Add(time.Minute)
		g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	}
	keys := cpicloudstack.NewKeyFile(cpicloudstack.KeyFileOptions{
		Path:  path,
		First: cpicloudstack.Keys{API: "first", Secret: "secret"},
		Parse: func(file []byte) (cpicloudstack.Keys, error) {
			api, secret, ok := strings.Cut(string(file), " ")
			if !ok {
				return cpicloudstack.Keys{}, errors.New("there is no secret key")
			}
			return cpicloudstack.Keys{API: api, Secret: secret}, nil
		},
		Now: func() time.Time { return now },
	})
	current := func() string {
		api, secret := keys.Current()
		return api + " " + secret
	}

	g.Expect(current()).To(Equal("first secret"), "the file is missing")
	write("second secret")
	g.Expect(current()).To(Equal("second secret"))
	write("third")
	g.Expect(current()).To(Equal("second secret"), "the file is invalid")
	write("third secret")
	g.Expect(current()).To(Equal("third secret"))
}
