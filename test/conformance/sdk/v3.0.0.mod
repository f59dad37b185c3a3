module sdk

go 1.26.0

require github.com/vmware/go-vcloud-director/v3 v3.0.0
